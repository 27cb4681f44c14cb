"use strict";

// Runs before the page is drawn, so that a chosen look does not flash.
try {
  const kept = localStorage.getItem("theme");
  if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
} catch {
  // Without storage the look follows the system.
}
