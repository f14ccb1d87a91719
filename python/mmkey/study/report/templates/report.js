// Sorts and filters tables. Without it the pages say the same, in the order of the results.
"use strict";
function keyOf(row, column, kind) {
  const cell = row.cells[column];
  const key = cell.dataset.key ?? cell.textContent.trim();
  return kind === "number" ? Number(key.replaceAll(",", "")) : key;
}
function columnOf(header) {
  // With two rows of headings the second one's columns come after those that span both.
  const table = header.closest("table"), rows = table.tHead.rows;
  if (header.parentNode === rows[0]) return header.cellIndex;
  return [...rows[0].cells].filter((cell) => cell.rowSpan > 1).length + header.cellIndex;
}
for (const header of document.querySelectorAll("table.sortable th[data-sort]")) {
  const button = document.createElement("button");
  button.type = "button";
  button.append(...header.childNodes);
  header.append(button);
  button.addEventListener("click", () => {
    const table = header.closest("table"), body = table.tBodies[0], kind = header.dataset.sort;
    const down = header.getAttribute("aria-sort") === "ascending";
    for (const other of table.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
    const column = columnOf(header), sign = down ? -1 : 1;
    const rows = [...body.rows].map((row) => [keyOf(row, column, kind), row]);
    rows.sort(([a], [b]) => sign * (kind === "number" ? a - b : a.localeCompare(b)));
    body.append(...rows.map(([, row]) => row));
  });
}
for (const form of document.querySelectorAll("form.filters")) {
  const table = document.getElementById(form.dataset.for);
  const rows = [...table.tBodies[0].rows], output = form.querySelector("output");
  const value = (name) => form.querySelector(`[data-filter="${name}"]`)?.value ?? "";
  const apply = () => {
    const text = value("text").trim().toLowerCase(), group = value("group");
    const state = value("state"), strategy = value("strategy"), granularity = value("granularity");
    let shown = 0;
    for (const row of rows) {
      const cells = [...row.querySelectorAll("td[data-state]")].filter(
        (cell) => (!strategy || cell.dataset.strategy === strategy) &&
          (!granularity || cell.dataset.granularity === granularity));
      const fits = (!text || row.textContent.toLowerCase().includes(text)) && (!group || row.dataset.group === group) &&
        (!state || cells.some((cell) => cell.dataset.state.split(" ").includes(state)));
      row.hidden = !fits;
      shown += fits;
    }
    output.textContent = output.dataset.count.replace("#", shown).replace("#", rows.length);
  };
  form.hidden = false;
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  apply();
}
