// Puts the page together: charts, heads, tables, the choice of light or dark.
const DATA = JSON.parse(document.getElementById("data").textContent);

for (const host of document.querySelectorAll("[data-chart]")) {
  makeChart(DATA.charts.find((chart) => chart.key === host.dataset.chart), host);
}
if (DATA.heads) makeHeads(DATA.heads, document.getElementById("head-study"));

for (const table of document.querySelectorAll("table[data-name]")) {
  const rows = () => [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent));
  const name = table.dataset.name;
  table.parentElement.after(element("div", { class: "tools" },
    element("button", { type: "button", "aria-label": `Download ${name} as CSV`, onclick: () => download(`${name}.csv`, "text/csv", csv(rows())) }, "CSV")));
}

const theme = document.querySelector(".theme");
theme.hidden = false;
const isDark = () => (document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
const nameTheme = () => { theme.textContent = isDark() ? "Light" : "Dark"; theme.setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"} colours`); };
theme.addEventListener("click", () => { document.documentElement.dataset.theme = isDark() ? "light" : "dark"; nameTheme(); });
nameTheme();
