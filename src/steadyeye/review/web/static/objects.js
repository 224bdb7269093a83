// Objects: four questions about a box.

import { all, chips, find, make } from "./page.js";
import { hang, view } from "./view.js";

export function objects({ decide, tell }) {
  const looking = view(find(".frames"));
  const questions = all("[data-question]");
  let answers = [];
  let part = [0, 0, 1, 1];

  function draw() {
    questions.forEach((question, index) => {
      question.querySelector("b").textContent = index in answers ? (answers[index] ? "yes" : "no") : "";
      if (index === answers.length) question.setAttribute("aria-current", "step");
      else question.removeAttribute("aria-current");
    });
    find("[data-do=previous]").disabled = answers.length === 0;
  }

  function add(...given) {
    answers = [...answers, ...given].slice(0, questions.length);
    draw();
    if (answers.length < questions.length) {
      tell(questions[answers.length].querySelector("span").textContent);
      return;
    }
    const answer = Object.fromEntries(questions.map((q, index) => [q.dataset.question, answers[index]]));
    const flaws = questions.slice(1).map((q) => q.dataset.question).filter((name) => answer[name]);
    decide(answer, [answer.well_sized ? "well sized" : "not well sized", ...flaws].join(", "));
  }

  return {
    pictures: ({ image }) => ({ object: image }),
    words: ({ label }) => `${label}. ${questions[0].querySelector("span").textContent}`,
    show({ label, box }, images) {
      const { naturalWidth: width, naturalHeight: height } = images.object;
      const [x0, y0, x1, y1] = box;
      const over = make("svg", { class: "over", viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" },
        make("rect", { class: "box chosen", x: x0, y: y0, width: x1 - x0, height: y1 - y0 }));
      hang(find("[data-frame=object]"), images.object, "The picture with the box", over);
      find("#labels").replaceChildren(...chips([label]));
      find("#away").textContent = `${Math.round(x1 - x0)} × ${Math.round(y1 - y0)} pixels`;
      part = [x0 / width, y0 / height, x1 / width, y1 / height];
      answers = [];
      looking.whole();
      draw();
    },
    act(name) {
      const acts = {
        yes: () => add(true),
        no: () => add(false),
        all: () => {
          answers = [];
          add(true, false, false, false);
        },
        previous: () => {
          answers = answers.slice(0, -1);
          draw();
        },
        box: () => looking.onto(part),
        closer: () => looking.zoom(1.4),
        farther: () => looking.zoom(1 / 1.4),
        whole: looking.whole,
      };
      acts[name]?.();
    },
  };
}
