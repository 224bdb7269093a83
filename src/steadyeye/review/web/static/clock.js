// Seconds that an item was looked at: only while the page is visible.

export function clock() {
  let before = 0;
  let since = null;
  const turn = () => {
    if (since !== null) before += performance.now() - since;
    since = document.hidden ? null : performance.now();
  };
  document.addEventListener("visibilitychange", turn);
  return {
    start() {
      turn();
      before = 0;
    },
    seconds() {
      turn();
      return before / 1000;
    },
  };
}
