"use strict";
// A heading sorts its table, once up and once down; numbers start with the highest.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  table.querySelectorAll("thead th").forEach((head, column) => {
    const value = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
    const numeric = head.classList.contains("number");
    head.querySelector("button").addEventListener("click", () => {
      const rising = head.ariaSort ? head.ariaSort === "descending" : !numeric;
      const compare = (a, b) => {
        if (!numeric) return a.localeCompare(b);
        if (isNaN(a) || isNaN(b)) return rising ? isNaN(b) - isNaN(a) : isNaN(a) - isNaN(b);
        return a - b;
      };
      const rows = [...body.rows].sort((a, b) => compare(value(a), value(b)) * (rising ? 1 : -1));
      table.querySelectorAll("thead th").forEach((other) => other.removeAttribute("aria-sort"));
      head.ariaSort = rising ? "ascending" : "descending";
      body.append(...rows);
    });
  });
}
// Of several views one is shown: the one chosen.
for (const chooser of document.querySelectorAll(".chooser")) {
  const select = chooser.querySelector("select");
  const show = () => {
    for (const view of document.querySelectorAll(".view")) view.hidden = view.id !== select.value;
  };
  select.addEventListener("change", show);
  chooser.hidden = false;
  show();
}
