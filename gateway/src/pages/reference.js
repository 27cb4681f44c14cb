"use strict";

// Swagger UI has a dark look but does not ask the system for it.
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const followSystem = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", followSystem);
followSystem();

window.SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#reference",
  deepLinking: true,
  displayRequestDuration: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  defaultModelExpandDepth: 3,
  filter: true,
  persistAuthorization: true,
  tryItOutEnabled: true,
  // The default asks an outside host to check the document.
  validatorUrl: null,
  // Nothing in the address may make the page load another document.
  queryConfigEnabled: false,
});
