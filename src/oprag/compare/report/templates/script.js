"use strict";
(() => {
  const list = document.getElementById("question-list");
  if (!list) return;
  const all = [...list.children];
  const label = document.createElement("label");
  label.className = "find";
  label.textContent = "Filter questions by words ";
  const input = document.createElement("input");
  input.type = "search";
  const count = document.createElement("span");
  count.className = "quiet";
  count.setAttribute("role", "status");
  label.append(input);
  list.before(label, count);
  let waiting = 0;
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const one of all) {
        const text = one.textContent.toLowerCase();
        one.hidden = !words.every((word) => text.includes(word));
        shown += one.hidden ? 0 : 1;
      }
      count.textContent = words.length ? `${shown} of ${all.length} questions` : "";
    }, 200);
  });
})();
