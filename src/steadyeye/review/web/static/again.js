// Loads a page again once the server can answer it.

import { insist, wait } from "./page.js";

await wait(2);
await insist(location.pathname, undefined, "", () => {});
location.reload();
