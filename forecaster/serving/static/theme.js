// Light or dark before the first paint: what the reader chose last, else what the system prefers.
const chosen = localStorage.getItem("theme");
if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
