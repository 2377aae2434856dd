//! A browser in the hands of a reader: open, click, type, see. Every step waits for a condition, never for a fixed
//! time.

use std::time::{Duration, Instant};

use fantoccini::actions::{InputSource as _, KeyAction, KeyActions};
use fantoccini::error::CmdError;
use fantoccini::wd::{TimeoutConfiguration, WebDriverCompatibleCommand, WindowHandle};
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::chromium::Chromium;
use crate::support::{PATIENCE, World};

/// The pause between two checks of the page.
const PAUSE: Duration = Duration::from_millis(15);

/// The control key in the encoding of WebDriver.
pub(crate) const CONTROL: char = '\u{e009}';
pub(crate) const ENTER: char = '\u{e007}';
pub(crate) const ESCAPE: char = '\u{e00c}';
pub(crate) const TAB: char = '\u{e004}';

/// One browser with one profile. Dropping it ends its processes.
pub(crate) struct Browser {
    runtime: Runtime,
    client: Client,
    has_script: bool,
    // The last field, so that it outlives the session.
    _chromium: Chromium,
}

impl Browser {
    /// A browser with an empty tab. Without Chromium, prints a message and returns `None`: then the story ends.
    pub(crate) fn start() -> Option<Self> {
        let chromium = Chromium::start()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let client = runtime.block_on(async {
            let mut builder = ClientBuilder::new(HttpConnector::new());
            let wanted = chromium.capabilities();
            builder.capabilities(wanted.as_object().unwrap().clone());
            let client = builder.connect(chromium.address()).await.unwrap();
            let timeouts =
                TimeoutConfiguration::new(Some(PATIENCE), Some(PATIENCE), Some(Duration::ZERO));
            client.update_timeouts(timeouts).await.unwrap();
            client
        });
        let browser = Self {
            runtime,
            client,
            has_script: true,
            _chromium: chromium,
        };
        browser.resize(1280, 800);
        Some(browser)
    }

    /// The size of the tab's content. Other tabs keep theirs.
    pub(crate) fn resize(&self, width: u32, height: u32) {
        let size = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false,
        });
        self.devtools("Emulation.setDeviceMetricsOverride", size);
    }

    /// Sets the theme of the reader's system: `light` or `dark`.
    pub(crate) fn prefer(&self, theme: &str) {
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": theme }] });
        self.devtools("Emulation.setEmulatedMedia", features);
        let script = "return matchMedia(`(prefers-color-scheme: ${arguments[0]})`).matches";
        self.until(theme, script, vec![json!(theme)]);
    }

    /// Turns scripts off, as readers can in their browser settings. Only for this tab, from its next page.
    pub(crate) fn turn_scripts_off(&mut self) {
        self.has_script = false;
        self.devtools(
            "Emulation.setScriptExecutionDisabled",
            json!({ "value": true }),
        );
    }

    /// A command of the DevTools protocol for this tab.
    pub(crate) fn devtools(&self, command: &str, parameters: Value) -> Value {
        self.command(
            "goog/cdp/execute",
            json!({ "cmd": command, "params": parameters }),
        )
    }

    /// Runs a script in each page from now on, before the page's own.
    pub(crate) fn prepare(&self, script: &str) {
        let source = json!({ "source": script });
        self.devtools("Page.addScriptToEvaluateOnNewDocument", source);
    }

    /// The browser's errors since the last call: exceptions of scripts, violations of the content security policy, and
    /// failed requests.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let entries = self.command("se/log", json!({ "type": "browser" }));
        let serious = entries.as_array().unwrap().iter();
        serious
            .filter(|entry| entry["level"] == "SEVERE" || entry["level"] == "WARNING")
            .map(|entry| entry["message"].as_str().unwrap().to_owned())
            .collect()
    }

    /// A command that only Chromium has.
    fn command(&self, path: &'static str, body: Value) -> Value {
        let command = Command { path, body };
        self.runtime
            .block_on(self.client.issue_cmd(command))
            .unwrap()
    }

    /// Opens a page of the daemon and waits until it has settled.
    pub(crate) fn open(&self, world: &World, path: &str) {
        let address = format!("{}{path}", world.url());
        self.runtime.block_on(self.client.goto(&address)).unwrap();
        self.settled();
    }

    pub(crate) fn reload(&self) {
        self.runtime.block_on(self.client.refresh()).unwrap();
        self.settled();
    }

    /// Opens an empty page.
    pub(crate) fn open_blank(&self) {
        self.runtime
            .block_on(self.client.goto("about:blank"))
            .unwrap();
    }

    /// Waits until the page has finished all pending work.
    pub(crate) fn settled(&self) {
        let what = if self.has_script {
            "return document.documentElement.dataset.settled !== undefined"
        } else {
            "return document.readyState === 'complete'"
        };
        self.until("the page to settle", what, vec![]);
    }

    /// Opens the first page with the token of the daemon's first admin.
    pub(crate) fn sign_in(&self, world: &World) {
        self.sign_in_with(world, &world.token().unwrap());
    }

    /// Opens the first page with a token.
    pub(crate) fn sign_in_with(&self, world: &World, token: &str) {
        self.open(world, "/login");
        self.fill("input[name=token]", token);
        self.click("form:has(input[name=token]) button");
        self.arrives("/");
    }

    /// Waits until the browser is at a settled page with that path and query.
    pub(crate) fn arrives(&self, path: &str) {
        let script = "return location.pathname + location.search === arguments[0]";
        self.until(path, script, vec![path.into()]);
        self.settled();
    }

    /// Waits until the browser is at a settled page below a path, and returns the rest of the address.
    pub(crate) fn arrives_below(&self, path: &str) -> String {
        let script = "const place = location.pathname + location.search;
            return place.startsWith(arguments[0]) && place.slice(arguments[0].length)";
        let rest = self.until(path, script, vec![path.into()]);
        self.settled();
        rest.as_str().unwrap().to_owned()
    }

    /// The path and the query of the present page.
    pub(crate) fn place(&self) -> String {
        let place = self.run("return location.pathname + location.search", vec![]);
        place.as_str().unwrap().to_owned()
    }

    /// Runs a script in the page and returns its value. It is the body of a function with `arguments`.
    pub(crate) fn run(&self, script: &str, arguments: Vec<Value>) -> Value {
        self.try_to_run(script, arguments).unwrap()
    }

    fn try_to_run(&self, script: &str, arguments: Vec<Value>) -> Result<Value, CmdError> {
        self.runtime
            .block_on(self.client.execute(script, arguments))
    }

    /// Waits until a script returns a value other than false, null, 0 or empty, and returns it. The page may change
    /// meanwhile.
    pub(crate) fn until(&self, what: &str, script: &str, arguments: Vec<Value>) -> Value {
        let holds = |value: &Value| match value {
            Value::Null | Value::Bool(false) => false,
            Value::Number(number) => number.as_f64() != Some(0.0),
            Value::String(text) => !text.is_empty(),
            Value::Bool(true) | Value::Array(_) | Value::Object(_) => true,
        };
        self.repeat(what, || {
            let value = self.try_to_run(script, arguments.clone());
            value.map(|value| holds(&value).then_some(value))
        })
    }

    /// Retries until there is a value. During a navigation, scripts fail with errors.
    fn repeat<T>(&self, what: &str, mut step: impl FnMut() -> Result<Option<T>, CmdError>) -> T {
        let until = Instant::now() + PATIENCE;
        loop {
            let outcome = step();
            if let Ok(Some(value)) = outcome {
                return value;
            }
            assert!(
                Instant::now() < until,
                "timed out while waiting for {what}: {:?}\n{}",
                outcome.err(),
                self.describe()
            );
            std::thread::sleep(PAUSE);
        }
    }

    /// The text of the page, for messages.
    fn describe(&self) -> String {
        let script = "return `${location.href}\\n${document.body.innerText.slice(0, 4000)}`";
        let seen = self.try_to_run(script, vec![]);
        seen.map_or_else(
            |error| error.to_string(),
            |page| page.as_str().unwrap_or_default().to_owned(),
        )
    }

    /// The visible part of the page, as PNG.
    pub(crate) fn picture(&self) -> Vec<u8> {
        self.runtime.block_on(self.client.screenshot()).unwrap()
    }

    /// The number of matching elements.
    pub(crate) fn count(&self, css: &str) -> u64 {
        let script = "return document.querySelectorAll(arguments[0]).length";
        self.run(script, vec![css.into()]).as_u64().unwrap()
    }

    /// The visible text of the first matching element; empty if there is none.
    pub(crate) fn text(&self, css: &str) -> String {
        let script = "return document.querySelector(arguments[0])?.innerText ?? ''";
        let text = self.run(script, vec![css.into()]);
        text.as_str().unwrap().to_owned()
    }

    /// The value of a field.
    pub(crate) fn value(&self, css: &str) -> String {
        let script = "return document.querySelector(arguments[0]).value";
        let value = self.run(script, vec![css.into()]);
        value.as_str().unwrap().to_owned()
    }

    /// Waits until a matching element exists.
    pub(crate) fn appears(&self, css: &str) {
        let script = "return document.querySelector(arguments[0]) !== null";
        self.until(css, script, vec![css.into()]);
    }

    /// Waits until a matching element with this text is visible.
    pub(crate) fn shows(&self, css: &str, text: &str) {
        let script = "return [...document.querySelectorAll(arguments[0])].some((element) =>
            element.checkVisibility() && element.innerText.includes(arguments[1]))";
        self.until(
            &format!("{text:?} in {css}"),
            script,
            vec![css.into(), text.into()],
        );
    }

    /// Clicks the first matching element as soon as it can be clicked.
    pub(crate) fn click(&self, css: &str) {
        self.click_at(Locator::Css(css), css);
    }

    /// Clicks the first button, link or disclosure in the page's content with just this text.
    pub(crate) fn press(&self, text: &str) {
        let path = format!(
            "//main//*[self::a or self::button or self::summary][normalize-space()='{text}']"
        );
        self.click_at(Locator::XPath(&path), text);
    }

    fn click_at(&self, place: Locator<'_>, what: &str) {
        self.repeat(&format!("a click on {what}"), || {
            self.runtime.block_on(async {
                self.client.find(place).await?.click().await?;
                Ok(Some(()))
            })
        });
    }

    /// Replaces the text of a field by typing.
    pub(crate) fn fill(&self, css: &str, text: &str) {
        self.repeat(&format!("a field {css}"), || {
            self.runtime.block_on(async {
                let field = self.client.find(Locator::Css(css)).await?;
                field.clear().await?;
                field.send_keys(text).await?;
                Ok(Some(()))
            })
        });
    }

    /// Chooses an entry of a list by its value.
    pub(crate) fn choose(&self, css: &str, value: &str) {
        self.click(&format!("{css} option[value='{value}']"));
    }

    /// Presses keys one after the other, with the present focus.
    pub(crate) fn keys(&self, keys: &str) {
        let mut actions = KeyActions::new("keyboard".to_owned());
        for key in keys.chars() {
            actions = actions
                .then(KeyAction::Down { value: key })
                .then(KeyAction::Up { value: key });
        }
        self.perform(actions);
    }

    /// Presses a key while another one is held.
    pub(crate) fn chord(&self, held: char, key: char) {
        let actions = KeyActions::new("keyboard".to_owned())
            .then(KeyAction::Down { value: held })
            .then(KeyAction::Down { value: key })
            .then(KeyAction::Up { value: key })
            .then(KeyAction::Up { value: held });
        self.perform(actions);
    }

    fn perform(&self, actions: KeyActions) {
        self.runtime
            .block_on(self.client.perform_actions(actions))
            .unwrap();
    }

    /// Opens a tab and goes to it.
    pub(crate) fn new_tab(&self) -> WindowHandle {
        let made = self.runtime.block_on(self.client.new_window(true)).unwrap();
        self.go_to_tab(&made.handle);
        made.handle
    }

    pub(crate) fn tabs(&self) -> Vec<WindowHandle> {
        self.runtime.block_on(self.client.windows()).unwrap()
    }

    pub(crate) fn go_to_tab(&self, tab: &WindowHandle) {
        self.runtime
            .block_on(self.client.switch_to_window(tab.clone()))
            .unwrap();
    }

    /// Closes the present tab. The caller must then switch to another tab.
    pub(crate) fn close_tab(&self) {
        self.runtime.block_on(self.client.close_window()).unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Chromium ends with its session. If it does not, it is killed.
        drop(self.runtime.block_on(self.client.clone().close()));
    }
}

/// A command outside of the standard, with a path below the session.
#[derive(Debug)]
struct Command {
    path: &'static str,
    body: Value,
}

impl WebDriverCompatibleCommand for Command {
    fn endpoint(
        &self,
        base: &url::Url,
        session: Option<&str>,
    ) -> Result<url::Url, url::ParseError> {
        base.join(&format!(
            "session/{}/{}",
            session.unwrap_or_default(),
            self.path
        ))
    }

    fn method_and_body(&self, _: &url::Url) -> (http::Method, Option<String>) {
        (http::Method::POST, Some(self.body.to_string()))
    }
}
