const cards = [...document.querySelectorAll(".card")];
const dialog = document.getElementById("large");
let current = 0;

function show(index) {
  current = (index + cards.length) % cards.length;
  const card = cards[current];
  dialog.querySelector("h3").textContent = card.querySelector("h3").textContent;
  dialog.querySelector(".steps span").textContent = `${current + 1} of ${cards.length}`;
  const pair = document.createElement("div");
  pair.className = "pair";
  pair.style.cssText = card.querySelector(".pair").style.cssText;
  pair.append(...[...card.querySelector(".pair").children].map((shot) => shot.cloneNode(true)));
  dialog.querySelector("div").replaceChildren(pair);
  if (!dialog.open) dialog.showModal();
}

cards.forEach((card, index) => card.querySelector(".pair").addEventListener("click", () => show(index)));
dialog.addEventListener("click", (event) => {
  const step = event.target.dataset.step;
  if (step) show(current + Number(step));
  if ("close" in event.target.dataset || event.target === dialog) dialog.close();
});
dialog.addEventListener("keydown", (event) => {
  if (event.key === "ArrowRight") show(current + 1);
  if (event.key === "ArrowLeft") show(current - 1);
});
dialog.addEventListener("close", () => cards[current].querySelector(".pair").focus());
