// SPDX-License-Identifier: Apache-2.0

// A browser lets no page that was opened as a file read other files, so the search shows titles without excerpts there.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;

// For readers without a mouse or a screen: what scrolls can have the focus, and headings of the sidebar have a level.
addEventListener("DOMContentLoaded", () => {
  for (const each of document.querySelectorAll("pre")) each.tabIndex = 0;
  for (const each of document.querySelectorAll(".caption[role=heading]")) each.ariaLevel = 2;
});
