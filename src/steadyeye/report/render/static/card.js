const SCALE = 2; // pixels of the saved picture for each of the card's own

// the card as a picture of its own, which has the fonts of the page but none of its styles
async function load(card, width, height) {
  const copy = card.cloneNode(true);
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  const picture = new Image();
  picture.src = `data:image/svg+xml,${encodeURIComponent(new XMLSerializer().serializeToString(copy))}`;
  await picture.decode();
  return picture;
}

async function save(button) {
  const card = document.querySelector("main svg");
  const canvas = document.createElement("canvas");
  canvas.width = SCALE * card.viewBox.baseVal.width;
  canvas.height = SCALE * card.viewBox.baseVal.height;
  const picture = await load(card, canvas.width, canvas.height);
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  const link = document.createElement("a");
  link.href = canvas.toDataURL("image/png");
  link.download = button.dataset.name;
  link.click();
}

// hidden until here: without scripts it would do nothing
const button = document.querySelector("#save");
button.addEventListener("click", () => save(button));
button.hidden = false;
