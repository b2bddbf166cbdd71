// The report of a segmented image: a handle between before and after, and the segment below the pointer.

const share = byId("share");

function wipe() {
  byId("wipe").style.setProperty("--share", `${share.value}%`);
}
share.addEventListener("input", wipe);
byId("wipe").addEventListener("pointermove", (event) => {
  if (event.pointerType === "mouse" && event.buttons === 0) return;
  const box = byId("wipe").getBoundingClientRect();
  share.value = String((100 * (event.clientX - box.left)) / box.width);
  wipe();
});
wipe();

const { width, height, sizes } = data;
const all = sizes.reduce((sum, size) => sum + size, 0);
const lit = byId("lit");
lit.width = width;
lit.height = height;
const pen = lit.getContext("2d");
let labels = null; // the label of every pixel

/** Labels are an image, red + 256 green + 65536 blue, which is the smallest encoding. */
function read() {
  const sheet = document.createElement("canvas");
  sheet.width = width;
  sheet.height = height;
  const context = sheet.getContext("2d", { willReadFrequently: true });
  context.drawImage(byId("labels"), 0, 0);
  const { data: bytes } = context.getImageData(0, 0, width, height);
  labels = Int32Array.from({ length: width * height }, (_, i) => bytes[4 * i] + 256 * bytes[4 * i + 1] + 65536 * bytes[4 * i + 2]);
}

let last = -1;

function light(segment) {
  if (segment === last || labels === null) return;
  last = segment;
  const image = pen.createImageData(width, height);
  if (segment >= 0) {
    for (let i = 0; i < labels.length; i += 1) {
      if (labels[i] === segment) image.data.set([240, 138, 114, 190], 4 * i);
    }
    byId("pointed").textContent = `Segment ${segment + 1}: ${sizes[segment].toLocaleString("en")} pixels, ${percent(sizes[segment] / all)} of all.`;
  }
  pen.putImageData(image, 0, 0);
}

byId("segments").addEventListener("pointermove", (event) => {
  if (labels === null) return;
  const box = lit.getBoundingClientRect();
  const column = Math.min(width - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * width)));
  const row = Math.min(height - 1, Math.max(0, Math.floor(((event.clientY - box.top) / box.height) * height)));
  light(labels[row * width + column]);
});
byId("labels").decode().then(read);
setTheme(root.dataset.theme);
