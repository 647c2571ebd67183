for (const head of document.querySelectorAll("th.sort")) head.addEventListener("click", () => {
  const table = head.closest("table"), place = [...head.parentNode.children].indexOf(head);
  const rows = [...table.tBodies[0].rows], down = head.dataset.down = head.dataset.down === "1" ? "" : "1";
  const value = row => { const text = row.cells[place]?.dataset.v ?? row.cells[place]?.textContent ?? ""; const number = parseFloat(text); return isNaN(number) ? text : number; };
  rows.sort((a, b) => { const [x, y] = [value(a), value(b)]; const order = typeof x === typeof y ? (x > y) - (x < y) : (typeof x === "number" ? 1 : -1); return down ? -order : order; });
  table.tBodies[0].append(...rows);
});
const show = () => { const wanted = document.querySelector("input[name=epsilon]:checked").value;
  for (const part of document.querySelectorAll("[data-epsilon]")) part.hidden = part.dataset.epsilon !== wanted; };
for (const button of document.querySelectorAll("input[name=epsilon]")) button.addEventListener("change", show);
show();
