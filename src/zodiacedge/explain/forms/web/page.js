const all = (open) => document.querySelectorAll("details").forEach((part) => { part.open = open; });
document.getElementById("unfold").addEventListener("click", () => all(true));
document.getElementById("fold").addEventListener("click", () => all(false));
document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
/** A link may lead into a part that is folded. */
const reveal = () => {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  for (let part = target; part; part = part.parentElement) if (part instanceof HTMLDetailsElement) part.open = true;
  target.scrollIntoView({ block: "center" });
};
addEventListener("hashchange", reveal);
reveal();
