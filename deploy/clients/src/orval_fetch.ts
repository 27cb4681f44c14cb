// How the client of orval sends a request: its own way knows neither an address nor a key, and reads JSON only.

import { baseUrl, key } from "./given.js";

export const call = async <T>(path: string, options: RequestInit): Promise<T> => {
  const headers = new Headers(options.headers);
  headers.set("Authorization", `Bearer ${key}`);
  const response = await fetch(new URL(path, baseUrl), { ...options, headers });
  return { data: await read(response), status: response.status, headers: response.headers } as T;
};

const read = (response: Response): Promise<unknown> => {
  const kind = response.headers.get("content-type") ?? "";
  if (/json/.test(kind)) return response.json();
  return /pdf|octet-stream/.test(kind) ? response.blob() : response.text();
};
