// Two boxes that say which two columns are across and up: always two different ones.

/** Boxes "across" and "up" for state.x and state.y; who chooses the other one's has them change places. */
function chooseTwo(state, drawAgain) {
  const [across, up] = ["across", "up"].map(byId);
  if (!across) return;
  const choose = (name, value) => {
    const other = name === "x" ? "y" : "x";
    if (state[other] === value) state[other] = state[name];
    state[name] = value;
    across.value = String(state.x);
    up.value = String(state.y);
    drawAgain();
  };
  across.addEventListener("change", () => choose("x", Number(across.value)));
  up.addEventListener("change", () => choose("y", Number(up.value)));
}
