//! A headless browser, driven over a pipe by Chromium's DevTools protocol.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};

/// Names of browsers that speak the protocol; `ONEPORT_BROWSER` names another one.
const NAMES: [&str; 6] = [
    "chromium",
    "chromium-browser",
    "chromium-headless-shell",
    "chrome-headless-shell",
    "google-chrome",
    "chrome",
];

/// A running browser with one open page.
pub(crate) struct Browser {
    child: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    calls: u64,
    session: Option<String>,
    /// What scripts threw, and addresses other than files that the page asked for.
    pub(crate) complaints: Vec<String>,
}

/// The browser's answers, one by one, until it ends.
fn read_messages(output: ChildStdout) -> Receiver<Value> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for message in BufReader::new(output).split(0).map_while(Result::ok) {
            let message = serde_json::from_slice(&message).expect("JSON from the browser");
            if sender.send(message).is_err() {
                break;
            }
        }
    });
    receiver
}

fn find() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("ONEPORT_BROWSER") {
        return Some(path.into());
    }
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let files = NAMES
        .iter()
        .flat_map(|name| folders.iter().map(move |f| f.join(name)));
    files.into_iter().find(|file| file.is_file())
}

impl Browser {
    /// Starts a browser. If none is found, says so even where the output of tests is captured, and
    /// returns `None`.
    pub(crate) fn start(test: &str) -> Option<Browser> {
        let Some(program) = find() else {
            let note = format!(
                "\nSKIPPED: {test} needs a browser: install chromium, or set ONEPORT_BROWSER\n"
            );
            // `eprintln!` would be captured.
            std::io::stderr()
                .write_all(note.as_bytes())
                .expect("standard error");
            return None;
        };
        // The browser reads its commands from descriptor 3 and answers on 4. It runs our own pages
        // only, so it needs no sandbox, which root would not get.
        let script = "exec \"$0\" --headless --no-sandbox --disable-gpu --hide-scrollbars \
                      --remote-debugging-pipe 3<&0 4>&1 </dev/null >/dev/null 2>&1";
        let mut child = Command::new("sh")
            .args(["-c", script])
            .arg(&program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let mut browser = Browser {
            child,
            input: input.expect("piped"),
            messages: read_messages(output.expect("piped")),
            calls: 0,
            session: None,
            complaints: Vec::new(),
        };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let session = browser.call("Target.attachToTarget", attach)["sessionId"].clone();
        browser.session = session.as_str().map(str::to_string);
        for domain in ["Page.enable", "Runtime.enable", "Network.enable"] {
            browser.call(domain, json!({}));
        }
        Some(browser)
    }

    /// Waits for a message that `wanted` accepts; notes complaints on the way.
    fn wait(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.messages.recv_timeout(Duration::from_secs(300));
            let message = message.expect("an answer of the browser within five minutes");
            let about = &message["params"];
            match message["method"].as_str() {
                Some("Runtime.exceptionThrown") => {
                    self.complaints.push(about["exceptionDetails"].to_string());
                }
                Some("Network.requestWillBeSent") => {
                    let address = about["request"]["url"].as_str().unwrap_or_default();
                    if !address.starts_with("file:") && !address.starts_with("data:") {
                        self.complaints.push(address.to_string());
                    }
                }
                _ => {}
            }
            if wanted(&message) {
                return message;
            }
        }
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        self.calls += 1;
        let id = self.calls;
        let mut message = json!({"id": id, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let line = format!("{message}\0");
        self.input
            .write_all(line.as_bytes())
            .expect("a running browser");
        let answer = self.wait(|m| m["id"] == id);
        assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
        answer["result"].clone()
    }

    /// Loads a file in a window of this size, in the light or dark theme.
    pub(crate) fn load(&mut self, file: &Path, (width, height): (u32, u32), dark: bool) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1,
                          "mobile": width < 500});
        self.call("Emulation.setDeviceMetricsOverride", size);
        let theme = if dark { "dark" } else { "light" };
        let features = json!([{"name": "prefers-color-scheme", "value": theme}]);
        self.call("Emulation.setEmulatedMedia", json!({"features": features}));
        let address = format!("file://{}", file.display());
        self.call("Page.navigate", json!({"url": address}));
        self.wait(|m| m["method"] == "Page.loadEventFired");
        // The page of a schedule unpacks its data after that.
        self.eval(
            "new Promise(done => { const at = id => document.getElementById(id), look = () => globalThis.player || \
             (at('legend') && !at('costs')) || !document.querySelector('script[type=module]') ? done() : setTimeout(look, 5); look(); })",
        );
    }

    /// What the keyboard reaches and a screen reader has no name for, by its role.
    pub(crate) fn nameless(&mut self) -> Vec<String> {
        let tree = self.call("Accessibility.getFullAXTree", json!({}));
        let nodes = tree["nodes"].as_array().expect("nodes").iter();
        let focusable = nodes.filter(|node| {
            let mut properties = node["properties"].as_array().into_iter().flatten();
            properties.any(|p| p["name"] == "focusable" && p["value"]["value"] == true)
        });
        let nameless = focusable.filter(|n| n["name"]["value"].as_str().is_none_or(str::is_empty));
        let roles = nameless.map(|n| n["role"]["value"].to_string());
        roles.collect()
    }

    /// The value of an expression in the page; waits for promises.
    pub(crate) fn eval(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let result = self.call("Runtime.evaluate", params);
        let thrown = &result["exceptionDetails"];
        assert!(thrown.is_null(), "{expression}: {thrown}");
        result["result"]["value"].clone()
    }

    /// Presses a key, such as `ArrowRight` or `c`, as a keyboard does.
    pub(crate) fn press(&mut self, key: &str) {
        let (code, text) = match key {
            "Tab" => (9, ""),
            "Enter" => (13, "\r"),
            " " => (32, " "),
            _ => (0, ""),
        };
        for kind in ["keyDown", "keyUp"] {
            let text = if kind == "keyDown" { text } else { "" };
            let params = json!({"type": kind, "key": key, "windowsVirtualKeyCode": code,
                                "text": text});
            self.call("Input.dispatchKeyEvent", params);
        }
    }

    /// Moves the pointer to the middle of the first element that matches a selector.
    pub(crate) fn point_at(&mut self, selector: &str) {
        let middle = self.eval(&format!(
            "(() => {{ const e = document.querySelector('{selector}'); e.scrollIntoView({{block: 'center', inline: 'center'}}); \
             const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; }})()"
        ));
        let params = json!({"type": "mouseMoved", "x": middle[0], "y": middle[1]});
        self.call("Input.dispatchMouseEvent", params);
    }

    /// Writes a picture of the whole page, whatever its height.
    pub(crate) fn screenshot(&mut self, file: &Path) {
        let size = self.eval("[innerWidth, document.documentElement.scrollHeight]");
        let clip = json!({"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1});
        let params = json!({"format": "png", "captureBeyondViewport": true, "clip": clip});
        let picture = self.call("Page.captureScreenshot", params);
        let text = picture["data"].as_str().expect("a picture");
        let bytes = BASE64_STANDARD.decode(text).expect("base 64");
        std::fs::write(file, bytes).expect("a writable folder");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
