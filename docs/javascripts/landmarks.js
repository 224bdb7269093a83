// what the theme adds to a page after it is loaded: copy buttons are no places to navigate to, and
// a table that is wider than the page is scrolled by key
function mend() {
  for (const nav of document.querySelectorAll(".md-code__nav")) nav.setAttribute("role", "none");
  for (const table of document.querySelectorAll(".md-typeset__scrollwrap")) table.tabIndex = 0;
}
new MutationObserver(mend).observe(document.body, { childList: true, subtree: true });
mend();
