//! The boxes of a page's own structure, asked of a headless Chromium over the pipe of its DevTools protocol.
//!
//! The pipe is file descriptors 3 and 4 of the browser, which only `sh` can hand to it without unsafe code:
//! messages are JSON documents that end with a zero byte. No port is opened, so that nobody else can speak to the
//! browser.

use super::browser::{Browser, LOOK, Shot, check_address, end};
use super::layout::MOST;
use crate::{Error, Result};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Instant;

/// A box of a page's structure.
#[derive(Debug, Clone, PartialEq)]
pub struct PageRegion {
    /// Left, top, width and height in pixels.
    pub place: [u32; 4],
    /// Its element: tag, id and classes.
    pub element: String,
}

/// Runs the program of its arguments with its own input and output as descriptors 3 and 4.
const WITH_PIPE: &str = r#"exec "$@" 3<&0 4>&1 </dev/null >/dev/null"#;

/// Finds the boxes. An element whose larger children cover most of it, or that is larger than a quarter of the window,
/// stands for its children; any other is a region itself. What is smaller than 1/200 of the window is part of what it
/// lies in.
const FIND: &str = r"(() => {
  const least = innerWidth * innerHeight / 200, most = innerWidth * innerHeight / 4;
  const found = [];
  // A form's field named children would hide them.
  const children = Object.getOwnPropertyDescriptor(Element.prototype, 'children').get;
  // What an element shows of itself within the box that its ancestors leave it.
  const place = (element, clip) => {
    const at = element.getBoundingClientRect();
    const left = Math.max(clip[0], Math.round(at.left)), top = Math.max(clip[1], Math.round(at.top));
    const right = Math.min(clip[0] + clip[2], Math.round(at.right));
    const bottom = Math.min(clip[1] + clip[3], Math.round(at.bottom));
    return [left, top, Math.max(0, right - left), Math.max(0, bottom - top)];
  };
  const area = at => at[2] * at[3];
  const visible = element => {
    const style = getComputedStyle(element);
    return style.display !== 'none' && style.visibility !== 'hidden' && style.opacity !== '0';
  };
  const name = element => element.tagName.toLowerCase() + (element.id ? '#' + element.id : '')
    + [...element.classList].map(word => '.' + word).join('');
  const visit = (element, depth, clip) => {
    const own = place(element, clip);
    const inside = depth > 0 && getComputedStyle(element).overflow !== 'visible' ? own : clip;
    const large = [...children.call(element)].filter(child => visible(child) && area(place(child, inside)) >= least);
    const covered = large.reduce((sum, child) => sum + area(place(child, inside)), 0);
    const splits = large.length > 0 && (area(own) > most || (large.length > 1 && covered >= 0.8 * area(own)));
    if (depth < 64 && (splits || (large.length > 0 && area(own) < covered / 2))) {
      large.forEach(child => visit(child, depth + 1, inside));
    } else if (area(own) >= least) {
      found.push({ place: own, element: name(element) });
    }
  };
  visit(document.body, 0, [0, 0, innerWidth, innerHeight]);
  return found.slice(0, 4096);
})()";

/// A browser that is being spoken to.
struct Session {
    input: ChildStdin,
    messages: Receiver<Value>,
    number: u64,
    page: Option<String>,
}

impl Browser {
    /// The boxes of a page's structure that are on a screenshot of it, in the document's order.
    pub fn regions(
        &self,
        address: &str,
        shot: &Shot,
        stop: &AtomicBool,
    ) -> Result<Vec<PageRegion>> {
        check_address(address)?;
        let profile = tempfile::Builder::new().prefix("metra-pages-").tempdir();
        let profile = profile.map_err(|error| Error::io(&std::env::temp_dir(), error))?;
        let failed = |problem: String| Error::Browser {
            problem: format!("{}: {address}: {problem}", self.program().display()),
        };
        let mut command = self.command(profile.path(), shot, &["sh", "-c", WITH_PIPE, "sh"])?;
        command
            .args(["--remote-debugging-pipe", "about:blank"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            end(&mut child);
            return Err(failed("expected a pipe to the browser, found none".into()));
        };
        let (sender, messages) = sync_channel(64);
        std::thread::spawn(move || {
            let documents = BufReader::new(output).split(0).map_while(|read| read.ok());
            for document in documents.filter_map(|text| serde_json::from_slice(&text).ok()) {
                if sender.send(document).is_err() {
                    return;
                }
            }
        });
        let mut session = Session {
            input,
            messages,
            number: 0,
            page: None,
        };
        let found = session.boxes(address, shot, stop);
        end(&mut child);
        found.map_err(|error| match error {
            Error::Browser { problem } => failed(problem),
            error => error,
        })
    }
}

impl Session {
    fn boxes(&mut self, address: &str, shot: &Shot, stop: &AtomicBool) -> Result<Vec<PageRegion>> {
        let started = Instant::now();
        // Time that the page is to have comes on top.
        let until = (started + shot.wait.unwrap_or_default(), shot, stop);
        let target = self.ask("Target.createTarget", json!({"url": "about:blank"}), until)?;
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let page = self.ask("Target.attachToTarget", attach, until)?;
        self.page = page["sessionId"].as_str().map(str::to_owned);
        let size = json!({"width": shot.width, "height": shot.height, "deviceScaleFactor": 1, "mobile": false});
        self.ask("Emulation.setDeviceMetricsOverride", size, until)?;
        self.ask("Page.enable", json!({}), until)?;
        let opened = self.ask("Page.navigate", json!({"url": address}), until)?;
        if let Some(reason) = opened["errorText"].as_str() {
            return Err(wrong(format!("expected a page, found {reason}")));
        }
        self.wait(
            |message| message["method"] == "Page.loadEventFired",
            "a page that loads",
            until,
        )?;
        if let Some(wait) = shot.wait {
            let waited = Instant::now();
            while waited.elapsed() < wait && !stop.load(Ordering::Relaxed) {
                std::thread::sleep(LOOK);
            }
        }
        // A world of its own, in which no script of the page has changed what functions do.
        let world = json!({"frameId": opened["frameId"]});
        let world = self.ask("Page.createIsolatedWorld", world, until)?;
        let context = &world["executionContextId"];
        let look = json!({"expression": FIND, "returnByValue": true, "contextId": context});
        let found = self.ask("Runtime.evaluate", look, until)?;
        let Some(regions) = found["result"]["value"].as_array() else {
            return Err(wrong(format!("expected boxes of elements, found {found}")));
        };
        let regions: Vec<PageRegion> = regions.iter().filter_map(region).take(MOST).collect();
        if regions.is_empty() {
            return Err(wrong(
                "expected elements on the page, found none that is large enough".into(),
            ));
        }
        Ok(regions)
    }

    /// Send a command and return its number.
    fn send(&mut self, method: &str, parameters: Value) -> Result<u64> {
        self.number += 1;
        let mut message = json!({"id": self.number, "method": method, "params": parameters});
        if let Some(page) = &self.page {
            message["sessionId"] = json!(page);
        }
        let sent = self.input.write_all(format!("{message}\0").as_bytes());
        sent.and_then(|()| self.input.flush())
            .map_err(|error| wrong(format!("{method}: {error}")))?;
        Ok(self.number)
    }

    /// Send a command and return its result.
    fn ask(
        &mut self,
        method: &str,
        parameters: Value,
        until: (Instant, &Shot, &AtomicBool),
    ) -> Result<Value> {
        let number = self.send(method, parameters)?;
        let answer = self.wait(|message| message["id"] == number, method, until)?;
        match answer.get("error") {
            Some(error) => Err(wrong(format!("{method}: {error}"))),
            None => Ok(answer["result"].clone()),
        }
    }

    /// The next message of a kind; others are dropped.
    fn wait(
        &mut self,
        is_meant: impl Fn(&Value) -> bool,
        what: &str,
        (started, shot, stop): (Instant, &Shot, &AtomicBool),
    ) -> Result<Value> {
        loop {
            if stop.load(Ordering::Relaxed) {
                return Err(metra::Error::Interrupted.into());
            }
            if Instant::now().saturating_duration_since(started) > shot.timeout {
                let seconds = shot.timeout.as_secs_f64();
                return Err(wrong(format!(
                    "expected {what} within {seconds} s, found none: killed"
                )));
            }
            match self.messages.recv_timeout(LOOK) {
                Ok(message) if is_meant(&message) => return Ok(message),
                Ok(message) if message["method"] == "Page.javascriptDialogOpening" => {
                    // Nobody is there to answer, and the page waits for it. Its answer is dropped.
                    let close = json!({"accept": false});
                    self.send("Page.handleJavaScriptDialog", close)?;
                }
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    let hint = "as root, or where the system forbids its sandbox, Chromium needs --no-sandbox";
                    return Err(wrong(format!(
                        "expected {what}, but the browser ended ({hint})"
                    )));
                }
            }
        }
    }
}

fn region(value: &Value) -> Option<PageRegion> {
    let mut place = [0; 4];
    for (edge, found) in place.iter_mut().zip(value["place"].as_array()?) {
        *edge = u32::try_from(found.as_u64()?).ok()?;
    }
    let element = value["element"].as_str()?;
    // A page chooses its names: nothing of them may move a terminal's cursor or break a line of a file.
    let element = element.chars().filter(|c| !c.is_control()).take(100);
    Some(PageRegion {
        place,
        element: element.collect(),
    })
}

fn wrong(problem: String) -> Error {
    Error::Browser { problem }
}
