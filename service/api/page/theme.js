// Before the first paint, so that no page flashes in the wrong colours. Not a module: those wait.
"use strict";
{
  const NEXT = { auto: "light", light: "dark", dark: "auto" };
  const KEPT = "lacuna-theme";

  const kept = () => {
    try {
      const theme = localStorage.getItem(KEPT);
      return theme in NEXT ? theme : "auto";
    } catch {
      return "auto"; // storage may be forbidden
    }
  };

  const show = (theme) => {
    document.documentElement.dataset.theme = theme;
    const button = document.getElementById("theme");
    if (button) {
      button.setAttribute("aria-label", `Theme: ${theme}`);
      document.getElementById("theme-text").textContent = theme[0].toUpperCase() + theme.slice(1);
    }
  };

  show(kept());
  document.addEventListener("DOMContentLoaded", () => {
    show(kept());
    document.getElementById("theme").addEventListener("click", () => {
      const theme = NEXT[document.documentElement.dataset.theme];
      show(theme);
      try {
        localStorage.setItem(KEPT, theme);
      } catch {
        // then it holds until the page is left
      }
    });
  });
}
