// Objects: what is in a box, then four questions about it.

import { all, find, make } from "./page.js";
import { hang, view } from "./view.js";

export function objects({ classes, decide, tell }) {
  const looking = view(find(".frames"));
  const questions = all("[data-question]");
  const naming = find("#naming");
  let given = []; // the class, null where it cannot be told; then true or false
  let offered = [];
  let part = [0, 0, 1, 1];

  find("#listed").replaceChildren(...classes.map((name) => make("option", { value: name })));

  const word = (one) => (one === null ? "cannot tell" : { true: "yes", false: "no" }[one] ?? one);
  const text = (index) => questions[index].querySelector("span").textContent;

  function draw() {
    questions.forEach((question, index) => {
      question.querySelector("b").textContent = index in given ? word(given[index]) : "";
      if (index === given.length) question.setAttribute("aria-current", "step");
      else question.removeAttribute("aria-current");
    });
    find("[data-step=object]").hidden = given.length > 0;
    find("[data-step=criteria]").hidden = given.length === 0;
    naming.hidden = true;
  }

  function offer() {
    find("#choices").replaceChildren(...offered.map((name, index) => make("button", {
      type: "button", "data-choice": name, "data-key": index + 1, "aria-keyshortcuts": index + 1,
    }, make("span", {}, name), " ", make("kbd", { "aria-hidden": "true" }, index + 1))));
  }

  function answer(...next) {
    given = [...given, ...next].slice(0, questions.length);
    draw();
    const [object, ...rest] = given;
    if (object === null) {
      decide({ object }, word(object));
    } else if (given.length < questions.length) {
      tell(text(given.length));
    } else {
      const names = questions.slice(1).map((one) => one.dataset.question);
      const said = Object.fromEntries(names.map((name, index) => [name, rest[index]]));
      const flaws = names.slice(1).filter((name) => said[name]);
      decide({ object, ...said }, [object, said.well_sized ? "well sized" : "not well sized", ...flaws].join(", "));
    }
  }

  function name() {
    naming.hidden = false;
    find("[data-step=object]").hidden = true;
    find("#named").value = "";
    find("#named").focus();
  }

  function back() {
    draw();
    find("#item").focus({ preventScroll: true });
  }

  find("#choices").addEventListener("click", (event) => {
    const choice = event.target.closest("[data-choice]")?.dataset.choice;
    if (choice !== undefined) answer(choice);
  });
  naming.addEventListener("submit", (event) => {
    event.preventDefault();
    const typed = find("#named").value.trim();
    if (!typed) return;
    find("#item").focus({ preventScroll: true });
    answer(typed);
  });
  find("#named").addEventListener("keydown", (event) => event.key === "Escape" && back());

  return {
    pictures: ({ image }) => ({ object: image }),
    words: ({ choices }) => `${text(0)} ${choices.join(" or ")}`,
    show({ choices, box }, images) {
      const { naturalWidth: width, naturalHeight: height } = images.object;
      const [x0, y0, x1, y1] = box;
      const over = make("svg", { class: "over", viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" },
        make("rect", { class: "box chosen", x: x0, y: y0, width: x1 - x0, height: y1 - y0 }));
      hang(find("[data-frame=object]"), images.object, "The picture with the box", over);
      find("#away").textContent = `${Math.round(x1 - x0)} × ${Math.round(y1 - y0)} pixels`;
      part = [x0 / width, y0 / height, x1 / width, y1 / height];
      given = [];
      offered = choices;
      looking.whole();
      offer();
      draw();
    },
    act(act) {
      const acts = {
        another: name,
        unclear: () => answer(null),
        back,
        yes: () => answer(true),
        no: () => answer(false),
        all: () => {
          given = given.slice(0, 1);
          answer(true, false, false, false);
        },
        previous: () => {
          given = given.slice(0, -1);
          draw();
        },
        box: () => looking.onto(part),
        closer: () => looking.zoom(1.4),
        farther: () => looking.zoom(1 / 1.4),
        whole: looking.whole,
      };
      acts[act]?.();
    },
  };
}
