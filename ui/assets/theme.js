// Runs before the first paint, so that the page never appears in the wrong theme. The setting is stored in the browser.
(() => {
  try {
    const theme = localStorage.getItem('theme');
    if (['system', 'light', 'dark'].includes(theme)) document.documentElement.dataset.theme = theme;
    // Storage may be forbidden. Then the theme of the page stays.
  } catch { }
})();
