"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    const key = (row) => {
      const text = row.cells[column].textContent;
      return [parseFloat(text.replace(/[,~]/g, "")), text];
    };
    button.addEventListener("click", () => {
      const sign = head.getAttribute("aria-sort") === "descending" ? 1 : -1;
      heads.forEach((one) => one.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", sign < 0 ? "descending" : "ascending");
      const rows = [...table.tBodies[0].rows].map((row) => [...key(row), row]);
      rows.sort(([number, text], [other, otherText]) => {
        if (Number.isNaN(number) || Number.isNaN(other)) {
          return Number.isNaN(number) - Number.isNaN(other) || -sign * text.localeCompare(otherText);
        }
        return sign * (number - other);
      });
      table.tBodies[0].append(...rows.map((row) => row[2]));
    });
  });
}
