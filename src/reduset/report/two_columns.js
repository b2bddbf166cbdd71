// Two boxes that select the columns of the horizontal and the vertical axis, always two different columns.

/** Boxes "across" and "up" for state.x and state.y. Selecting the column of the other box exchanges both. */
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
