// Runs before the page is drawn, so that it never appears in another theme first. The choice is this browser's.
(() => {
  try {
    const theme = localStorage.getItem('theme');
    if (['system', 'light', 'dark'].includes(theme)) document.documentElement.dataset.theme = theme;
    // Storage may be forbidden: then the theme is the page's.
  } catch { }
})();
