// The switch between the looks: as the system has it, light, dark.

import { h, show } from "./dom.js";

const NEXT = { "": "light", light: "dark", dark: "" };
const NAMES = { "": ["◐", "System"], light: ["☀", "Light"], dark: ["☾", "Dark"] };

export function themeSwitch() {
  const button = document.getElementById("theme");
  const root = document.documentElement;
  const label = () => {
    const [sign, name] = NAMES[root.dataset.theme ?? ""];
    show(button, h("span", { "aria-hidden": "true" }, sign), " ", h("span", { class: "name" }, "Look: ", name));
  };
  button.addEventListener("click", () => {
    const next = NEXT[root.dataset.theme ?? ""];
    if (next) root.dataset.theme = next;
    else delete root.dataset.theme;
    try {
      localStorage.setItem("theme", next);
    } catch {
      // Without storage the look is for this page.
    }
    label();
  });
  label();
}
