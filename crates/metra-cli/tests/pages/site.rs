//! A small news site that lives in this process: what the tests of `metra pages` look at with a real
//! browser, and what `examples/pages_site.rs` serves for the guide.
//!
//! Two columns of news get a new story from time to time, on top of the older ones. Two advertisements, the
//! highlighted entry of the menu and a box of links are drawn anew for every version, each among a few
//! states, as a page draws them at every load. A clock always differs. So all but the news is as different
//! after one version as after thirty. Everything follows from the seed and the version's number.

use metra::internal::Stream;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Size of the window in which the layout is exact.
pub(crate) const WINDOW: [u32; 2] = [1280, 960];

/// Left, top, width and height of the two columns of news.
pub(crate) const NEWS: [[u32; 4]; 2] = [[24, 180, 430, 410], [474, 180, 430, 410]];

/// How often a column gets a new story.
const NEW_STORY: [f64; 2] = [0.25, 0.2];

/// Stories that a column shows, if there is room.
const STORIES: usize = 7;

/// Versions for which an advertisement stays where it dwells.
const DWELL: u64 = 8;

/// Stories of a column that can be seen, and so be edited.
const SEEN: u64 = 3;

/// What makes changes hard to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hardship {
    /// Nothing.
    None,
    /// No story ever comes: a word in the heading of one is replaced.
    SmallChanges,
    /// Advertisements stay for some versions, as content does.
    DwellingBanners,
}

impl std::str::FromStr for Hardship {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "none" => Ok(Hardship::None),
            "small-changes" => Ok(Hardship::SmallChanges),
            "dwelling-banners" => Ok(Hardship::DwellingBanners),
            other => Err(format!(
                "expected none, small-changes or dwelling-banners, but found {other:?}"
            )),
        }
    }
}

/// A site with its seed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Site {
    pub(crate) seed: u64,
    pub(crate) hardship: Hardship,
}

impl Site {
    /// Stories that a column has had up to a version, or, where changes are small, edits beside the first ones.
    fn stories(self, column: usize, version: u64) -> u64 {
        let came = (1..=version).filter(|at| {
            let purpose = format!("story of column {column}");
            Stream::new(self.seed, &purpose, *at).unit() < NEW_STORY[column]
        });
        STORIES as u64 + came.count() as u64
    }

    /// Whether the news of two versions differ.
    pub(crate) fn differs(self, a: u64, b: u64) -> bool {
        (0..NEWS.len()).any(|column| self.stories(column, a) != self.stories(column, b))
    }

    /// The document of a version.
    pub(crate) fn page(self, version: u64) -> String {
        let state = |what: &str, states: u64| Stream::new(self.seed, what, version).below(states);
        let banner = |what: &str, states: u64| {
            let shown = match self.hardship {
                Hardship::DwellingBanners => version / DWELL,
                _ => version,
            };
            Stream::new(self.seed, what, shown).below(states)
        };
        let minutes = 8 * 60 + 37 * version;
        let clock = format!("{:02}:{:02}", minutes / 60 % 24, minutes % 60);
        let open = state("entry of the menu", 7);
        let menu: String = [
            "Home", "World", "Economy", "Science", "Culture", "Sport", "Weather",
        ]
        .iter()
        .enumerate()
        .map(|(number, name)| {
            let open = if number as u64 == open { "open" } else { "" };
            format!("<span class='{open}'>{name}</span>")
        })
        .collect();
        let news: String = (0..NEWS.len()).map(|c| self.column(c, version)).collect();
        let [links, side, foot] = [
            links(state("box of links", 4)),
            advertisement(banner("advertisement at the side", 5), 332, 380),
            advertisement(5 + banner("advertisement below", 4), 880, 130),
        ];
        let about =
            "The Loopback Gazette is written anew for every reader who asks for it. ".repeat(5);
        format!(
            "<!doctype html><html><head><meta charset='utf-8'><title>The Loopback Gazette</title>\
             <link rel='icon' href='data:,'><style>{STYLE}</style></head><body>\
             <div class='at head' style='left:24px;top:12px;width:700px;height:56px'>The Loopback Gazette</div>\
             <div class='at clock' style='left:1010px;top:14px;width:246px;height:56px'>{clock}</div>\
             <div class='at menu' style='left:0;top:80px;width:1280px;height:48px'>{menu}</div>{news}\
             <div class='at latest' style='left:24px;top:138px;width:880px;height:34px'>Latest news</div>\
             <div class='at' style='left:924px;top:140px;width:332px;height:380px'>{side}</div>\
             <div class='at box' style='left:924px;top:540px;width:332px;height:220px'>{links}</div>\
             <div class='at' style='left:24px;top:630px;width:880px;height:130px'><p>{about}</p></div>\
             <div class='at' style='left:24px;top:790px;width:880px;height:130px'>{foot}</div>\
             </body></html>"
        )
    }

    fn column(self, column: usize, version: u64) -> String {
        let [left, top, width, height] = NEWS[column];
        let known = self.stories(column, version);
        let (newest, edits) = match self.hardship {
            Hardship::SmallChanges => (STORIES as u64, known - STORIES as u64),
            _ => (known, 0),
        };
        let stories: String = (0..STORIES as u64)
            .map(|back| {
                // Edits go to the stories that are seen in turn.
                let edits = (edits + SEEN - 1).saturating_sub(back) / SEEN;
                self.story(column, newest - back, if back < SEEN { edits } else { 0 })
            })
            .collect();
        format!(
            "<div class='at news' style='left:{left}px;top:{top}px;width:{width}px;height:{height}px'>\
             {stories}</div>"
        )
    }

    /// A picture, a heading and some lines, each story with its own.
    fn story(self, column: usize, number: u64, edits: u64) -> String {
        let mut random = Stream::new(self.seed, &format!("words of column {column}"), number);
        let mut heading = sentence(&mut random, 4, 7);
        if edits > 0 {
            let purpose = format!("edits of column {column}");
            let mut edited = Stream::new(self.seed, &purpose, 1000 * number + edits);
            let word = sentence(&mut edited, 1, 1)
                .trim_end_matches(". ")
                .to_lowercase();
            let mut words: Vec<&str> = heading.split(' ').collect();
            words[1] = &word;
            heading = words.join(" ");
        }
        let text: String = (0..2 + random.below(2))
            .map(|_| sentence(&mut random, 6, 11))
            .collect();
        let (hue, turn) = (random.below(360), random.below(180));
        format!(
            "<div class='story'><i style='background:repeating-linear-gradient({turn}deg,\
             hsl({hue},60%,45%) 0 {a}px,hsl({hue},40%,75%) {a}px {b}px)'></i>\
             <h2>{heading}</h2><p>{text}</p></div>",
            a = 4 + hue % 7,
            b = 11 + hue % 9
        )
    }
}

fn sentence(random: &mut Stream, least: u64, most: u64) -> String {
    let words = least + random.below(most - least + 1);
    let mut out = String::new();
    for word in 0..words {
        let syllables = 1 + random.below(3);
        let mut letters: String = (0..syllables)
            .map(|_| SYLLABLES[random.below(SYLLABLES.len() as u64) as usize])
            .collect();
        if word == 0 {
            letters[..1].make_ascii_uppercase();
        }
        out.push_str(&letters);
        out.push_str(if word + 1 == words { ". " } else { " " });
    }
    out
}

const SYLLABLES: [&str; 20] = [
    "ba", "cor", "den", "el", "fi", "gan", "hu", "in", "ju", "kel", "lo", "mar", "ne", "or", "pi",
    "qua", "ri", "sto", "ta", "ver",
];

fn links(state: u64) -> String {
    let shown = [3, 5, 6, 4][state as usize];
    let titles = ["Most read", "Most shared", "Letters", "From the archive"];
    let lines: String = (0..shown)
        .map(|line| {
            format!(
                "<li>{}</li>",
                "link ".repeat(2 + (line + state as usize) % 5)
            )
        })
        .collect();
    format!("<h2>{}</h2><ul>{lines}</ul>", titles[state as usize])
}

/// Loud colours and large shapes.
fn advertisement(state: u64, width: u32, height: u32) -> String {
    let (hue, size) = (state * 83 % 360, 30 + 11 * (state as u32 * 5 % 7));
    let shape = if state.is_multiple_of(2) {
        format!(
            "<circle cx='{}' cy='{}' r='{size}' fill='white'/>",
            width / 3,
            height / 2
        )
    } else {
        format!(
            "<rect x='{}' y='8' width='{size}' height='{}' fill='black'/>",
            width / 2,
            height - 16
        )
    };
    let words = ["BUY NOW", "50 % OFF", "NEW!", "TRY IT", "LAST DAYS"][state as usize % 5];
    format!(
        "<svg width='{width}' height='{height}'><rect width='100%' height='100%' fill='hsl({hue},85%,55%)'/>\
         {shape}<text x='{}' y='{}' font-size='{}' font-family='sans-serif' font-weight='bold'>{words}</text></svg>",
        12 + 9 * state,
        height - 14 - 6 * state as u32,
        34 + 3 * state
    )
}

const STYLE: &str = "body{margin:0;font-family:sans-serif;background:#fff;color:#222}\
    .at{position:absolute;overflow:hidden}.head{font:bold 40px serif}.clock{font:bold 44px monospace;text-align:right}\
    .menu{background:#234;color:#fff;line-height:48px;font-size:20px}.menu span{display:inline-block;width:182px;\
    text-align:center}.menu .open{background:#fc3;color:#000}.latest{font:bold 24px serif;border-bottom:2px solid #234}.news{background:#fafafa}.story{height:108px;overflow:hidden;\
    border-bottom:1px solid #ccc}.story i{float:left;width:104px;height:84px;margin:8px 12px 8px 4px}\
    h2{font-size:18px;margin:6px 0 2px}p{font-size:14px;margin:2px 0;line-height:19px}.box{background:#eef}\
    .box h2{padding:4px 12px}li{line-height:26px}";

/// The site on a port of its own, for as long as the process lives.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    version: Arc<AtomicU64>,
}

impl Served {
    /// Serve a site at a port of the loopback interface (0 for any that is free). Where it lives, every
    /// request is answered with the next version; otherwise the version is as it was set.
    pub(crate) fn start(site: Site, port: u16, lives: bool) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port))?;
        let address = listener.local_addr()?;
        let version = Arc::new(AtomicU64::new(0));
        let shown = Arc::clone(&version);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A browser may leave connections open without a word; each has a thread of its own.
                let shown = Arc::clone(&shown);
                std::thread::spawn(move || answer(site, stream, &shown, lives));
            }
        });
        Ok(Served { address, version })
    }

    /// Show this version from now on.
    pub(crate) fn show(&self, version: u64) {
        self.version.store(version, Ordering::SeqCst);
    }
}

fn answer(site: Site, mut stream: TcpStream, shown: &AtomicU64, lives: bool) -> Option<()> {
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .ok()?;
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
    let request = lines.next()?.ok()?;
    while !lines.next()?.ok()?.is_empty() {}
    let (status, body) = if request.starts_with("GET / ") {
        let version = shown.fetch_add(u64::from(lives), Ordering::SeqCst);
        ("200 OK", site.page(version))
    } else {
        ("404 Not Found", String::new())
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nCache-Control: no-store\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body.as_bytes()).ok()
}
