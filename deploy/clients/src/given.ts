// What every test uses: where the API is, and what is sent to it.

const given = (name: string): string => {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set`);
  return value;
};

export const baseUrl = given("BASE_URL");
export const key = given("API_KEY");

/** Differs from run to run, so that a copy can be tested again and again. */
export const run = Math.random().toString(36).slice(2, 10);

export const flow = (name: string): string =>
  `name: ${name}\ntrigger: {event: invoice.paid}\nsteps:\n  - id: later\n    wait: {for: 1h}\n`;

export const text = (content: string): Blob => new Blob([content], { type: "text/plain" });

/** The last part of the path of a document's PDF, which is its secret. */
export const tokenOf = (pdfUrl: string): string => {
  const found = /\/documents\/([^/]+)\/pdf$/.exec(pdfUrl);
  if (!found) throw new Error(`${pdfUrl} is no address of a PDF`);
  return found[1]!;
};
