// Uploads files one by one and shows the progress.

export function startUploads() {
  const form = document.querySelector('form[data-upload]');
  const files = form.querySelector('input[type=file]');
  const line = form.querySelector('[data-progress]');
  // Files can be dropped anywhere on the card.
  for (const kind of ['dragover', 'drop']) form.closest('.card').addEventListener(kind, (event) => {
    const dropped = event.dataTransfer;
    if (!dropped.types.includes('Files')) return;
    event.preventDefault();
    if (kind === 'drop') files.files = dropped.files;
  });
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    event.stopPropagation();
    for (const file of files.files) if (!(await putFile(form, file, line))) return;
    location.reload();
  });
}

function putFile(form, file, line) {
  // In paths of blobs, a slash in a name is `%2F`, and a percent sign `%25` where it could be read as part of that.
  const name = encodeURIComponent(file.name.replace(/%(?=2f|25)/gi, '%25'));
  const expiry = form.elements.expires_in?.value;
  const query = new URLSearchParams({ project: form.dataset.project, ...(expiry ? { expires_in: expiry } : {}) });
  const [bar, text] = line.children;
  line.hidden = bar.hidden = false;
  return new Promise((done) => {
    const request = new XMLHttpRequest();
    request.open('PUT', `${form.dataset.upload}${name}?${query}`);
    request.upload.onprogress = (event) => { bar.max = event.total; bar.value = event.loaded; };
    request.onloadend = () => {
      const isStored = /^2/.test(request.status);
      let detail = 'no answer';
      // An answer of a proxy may have another format.
      try { detail = JSON.parse(request.responseText).detail ?? detail; } catch { }
      if (!isStored) text.textContent = `${file.name} was not stored: ${detail}`;
      bar.hidden = !isStored;
      done(isStored);
    };
    text.textContent = `${file.name} is being sent`;
    request.send(file);
  });
}
