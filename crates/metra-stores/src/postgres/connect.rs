//! From an address to a connection.
//!
//! The address is that of libpq, so that one address serves psql and metra; what the client library does
//! not know (`sslmode=verify-full`, `sslrootcert`) is taken out and done here (`tls.rs`). An address may
//! hold a password: nothing here prints it, and messages name host and database alone.

use super::failure::server_error;
use super::tls::{SslMode, TlsSettings};
use crate::{Error, Result};
use postgres::config::Host;
use postgres::{CancelToken, Client, Config, NoTls};
use std::fmt;
use std::time::Duration;

/// How long a server may take to answer, where the address does not say.
const CONNECT: Duration = Duration::from_secs(15);

/// Where a database is and how to get in.
#[derive(Clone)]
pub struct Address {
    config: Config,
    tls: TlsSettings,
    place: String,
}

impl Address {
    /// Whether a text is meant as an address of PostgreSQL.
    pub fn is(text: &str) -> bool {
        text.starts_with("postgres://") || text.starts_with("postgresql://")
    }

    /// Read `postgres://user:password@host:port/database?sslmode=…`. What it does not say is taken from the
    /// environment as libpq does: PGHOST, PGPORT, PGUSER, PGDATABASE, PGPASSWORD, PGPASSFILE, PGSSLMODE,
    /// PGSSLROOTCERT, PGCONNECT_TIMEOUT, PGOPTIONS, PGAPPNAME.
    pub fn parse(text: &str) -> Result<Self> {
        Self::with_environment(text, &|name| {
            std::env::var(name).ok().filter(|value| !value.is_empty())
        })
    }

    fn with_environment(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self> {
        // What the parser says may quote a part of the password: it is not passed on.
        let bad = |problem: &str| Error::Refused {
            place: "the address of the database".into(),
            problem: format!(
                "{problem}; characters such as @ : / ? # in a password are written as %40 %3A %2F %3F %23"
            ),
        };
        if !is_unambiguous(text) {
            return Err(bad(
                "expected one @, between password and host, but found another",
            ));
        }
        let (rest, mode, root) = ssl_parameters(text);
        let (mode, root) = (
            mode.or_else(|| variable("PGSSLMODE")),
            root.or_else(|| variable("PGSSLROOTCERT")),
        );
        let mut config: Config = rest.parse().map_err(|_| {
            bad("expected postgres://user:password@host:port/database, but it cannot be read")
        })?;
        let mode = match mode {
            None => SslMode::Prefer,
            Some(mode) => SslMode::from_name(&mode).ok_or_else(|| {
                bad("expected sslmode to be disable, allow, prefer, require, verify-ca or verify-full")
            })?,
        };
        let number = |name: &str| -> Result<Option<u64>> {
            let value = variable(name).map(|value| value.parse());
            let value = value.transpose();
            value.map_err(|_| {
                bad(&format!(
                    "expected {name} in the environment to be a number"
                ))
            })
        };
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            config.host(&variable("PGHOST").unwrap_or_else(|| "localhost".to_owned()));
        }
        if config.get_ports().is_empty()
            && let Some(port) = number("PGPORT")?
        {
            let port = u16::try_from(port);
            config.port(port.map_err(|_| bad("expected PGPORT to be a port"))?);
        }
        if config.get_user().is_none()
            && let Some(user) = variable("PGUSER")
        {
            config.user(&user);
        }
        if config.get_dbname().is_none()
            && let Some(name) = variable("PGDATABASE")
        {
            config.dbname(&name);
        }
        if config.get_options().is_none()
            && let Some(options) = variable("PGOPTIONS")
        {
            config.options(&options);
        }
        if config.get_password().is_none()
            && let Some(password) = variable("PGPASSWORD").or_else(|| from_file(&config, variable))
        {
            config.password(password);
        }
        if config.get_connect_timeout().is_none() {
            let seconds = number("PGCONNECT_TIMEOUT")?.map(Duration::from_secs);
            config.connect_timeout(seconds.unwrap_or(CONNECT));
        }
        config.application_name(&variable("PGAPPNAME").unwrap_or_else(|| "metra".to_owned()));
        config.ssl_mode(mode.ssl_mode());
        let place = place(&config);
        Ok(Address {
            config,
            tls: TlsSettings { mode, root },
            place,
        })
    }

    /// Pass on what the server notices, such as an index that does not fit into memory.
    pub fn noticing(mut self, notice: fn(&str)) -> Self {
        self.config
            .notice_callback(move |report| notice(report.message()));
        self
    }

    /// Connect, with a short wait for locks: a live table must not wait for us.
    pub fn connect(&self) -> Result<Client> {
        let connected = match self.tls.mode {
            SslMode::Disable => self.config.connect(NoTls),
            _ => self.config.connect(self.tls.connector(&self.place)?),
        };
        let mut client = connected.map_err(|e| server_error(&self.place, &e))?;
        client
            .batch_execute("SET lock_timeout = '5s'; SET statement_timeout = 0")
            .map_err(|e| server_error(&self.place, &e))?;
        // So that the server ends the work of a client that was killed. Servers before 14 and those
        // on some systems have no such setting, which is no reason to stop.
        let _ = client.batch_execute("SET client_connection_check_interval = '2s'");
        Ok(client)
    }

    /// Ask the server to end what a connection is doing.
    pub(super) fn cancel(&self, token: &CancelToken) -> Result<()> {
        let connected = match self.tls.mode {
            SslMode::Disable => token.cancel_query(NoTls),
            _ => token.cancel_query(self.tls.connector(&self.place)?),
        };
        connected.map_err(|e| server_error(&self.place, &e))
    }
}

/// Host, port and database, without user and password.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({})", self.place)
    }
}

fn place(config: &Config) -> String {
    let ports = config.get_ports();
    let hosts: Vec<String> = (config.get_hosts().iter().enumerate())
        .map(|(at, host)| {
            let port = ports.get(at).or(ports.first()).copied().unwrap_or(5432);
            match host {
                Host::Tcp(name) => format!("{name}:{port}"),
                #[cfg(unix)]
                Host::Unix(path) => format!("{}:{port}", path.display()),
            }
        })
        .collect();
    match config.get_dbname() {
        Some(name) => format!("{}/{name}", hosts.join(",")),
        None => hosts.join(","),
    }
}

/// Whether host and password can be told apart: an @ in a password that is not written as %40 would make
/// the rest of it a host, which messages name.
fn is_unambiguous(text: &str) -> bool {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let before_query = rest.split('?').next().unwrap_or_default();
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let of = |text: &str| text.matches('@').count();
    // A question mark in a password hides the @ behind it.
    let hidden = of(before_query) == 0 && of(rest) > 0 && authority.contains(':');
    of(before_query) <= 1 && of(before_query) == of(authority) && !hidden
}

/// The password that the file of passwords has for a connection, as libpq reads it.
fn from_file(config: &Config, variable: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let file = variable("PGPASSFILE").or_else(|| Some(format!("{}/.pgpass", variable("HOME")?)))?;
    let host = match config.get_hosts().first()? {
        Host::Tcp(name) => name.clone(),
        #[cfg(unix)]
        Host::Unix(_) => "localhost".to_owned(),
    };
    let port = config
        .get_ports()
        .first()
        .copied()
        .unwrap_or(5432)
        .to_string();
    let user = config
        .get_user()
        .map(str::to_owned)
        .or_else(|| variable("USER"))?;
    let database = config.get_dbname().unwrap_or(&user).to_owned();
    let wanted = [host, port, database, user];
    let text = std::fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| {
        let fields = password_fields(line);
        let [of @ .., password] = &fields[..] else {
            return None;
        };
        let fits = |(field, wanted): (&String, &String)| field == "*" || field == wanted;
        (of.len() == 4 && of.iter().zip(&wanted).all(fits)).then(|| password.clone())
    })
}

/// The fields of a line: colons part them, and a backslash takes the next character as it is.
fn password_fields(line: &str) -> Vec<String> {
    if line.starts_with('#') {
        return Vec::new();
    }
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        let taken = match c {
            ':' if fields.len() < 5 => {
                fields.push(String::new());
                continue;
            }
            '\\' => characters.next(),
            c => Some(c),
        };
        if let Some(field) = fields.last_mut() {
            field.extend(taken);
        }
    }
    fields
}

/// The address without `sslmode` and `sslrootcert`, and these.
fn ssl_parameters(text: &str) -> (String, Option<String>, Option<String>) {
    // A question mark before the @ belongs to the password.
    let after = text.find('@').unwrap_or(0);
    let Some(mark) = text.get(after..).and_then(|rest| rest.find('?')) else {
        return (text.to_owned(), None, None);
    };
    let (base, query) = text.split_at(after + mark);
    let (mut mode, mut root, mut kept) = (None, None, Vec::new());
    for parameter in query.trim_start_matches('?').split('&') {
        match parameter.split_once('=') {
            Some(("sslmode", value)) => mode = Some(value.to_owned()),
            Some(("sslrootcert", value)) => root = Some(value.replace("%2F", "/")),
            _ => kept.push(parameter),
        }
    }
    (format!("{base}?{}", kept.join("&")), mode, root)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_its_place_and_keeps_its_password() {
        let address =
            Address::parse("postgres://me:s%40cret@db.example:6432/shop?sslmode=disable").unwrap();
        assert_eq!(address.to_string(), "db.example:6432/shop");
        assert_eq!(format!("{address:?}"), "Address(db.example:6432/shop)");
        assert_eq!(address.config.get_password(), Some(&b"s@cret"[..]));
        let socket = Address::parse("postgres://%2Fvar%2Frun/shop?connect_timeout=3").unwrap();
        assert_eq!(socket.to_string(), "/var/run:5432/shop");
        assert_eq!(
            Address::parse("postgresql:///x").unwrap().to_string(),
            "localhost:5432/x"
        );
    }

    #[test]
    fn what_is_wrong_with_an_address_does_not_show_it() {
        for wrong in [
            "postgres://me:hidden@db:port/shop",
            "postgres://me:hidden@db/shop?nothing=1",
            "postgres://me:hidden@db/shop?sslmode=hidden",
        ] {
            let report = Address::parse(wrong).unwrap_err().to_string();
            assert!(
                report.contains("expected") && !report.contains("hidden"),
                "{report}"
            );
        }
    }

    #[test]
    fn a_password_that_is_not_escaped_is_shown_nowhere() {
        for wrong in [
            "postgres://me:hid@den@db/shop",
            "postgres://me:12/hidden@db/shop",
            "postgres://me:hid#den@db/shop",
            "postgres://me:hid?den@db/shop",
        ] {
            let report = Address::parse(wrong).unwrap_err().to_string();
            assert!(report.contains("%40"), "{report}");
            assert!(
                !report.contains("hid") && !report.contains("den"),
                "{report}"
            );
        }
        assert!(is_unambiguous("postgres://db/shop?application_name=a@b"));
    }

    #[test]
    fn what_an_address_does_not_say_is_taken_from_the_environment() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pass");
        let lines = "# hosts\nother:*:*:*:no\ndb:7000:shop:m\\:e:s:e\\\\cret\n*:*:*:*:last\n";
        std::fs::write(&file, lines).unwrap();
        let file = file.to_string_lossy().into_owned();
        let variable = |name: &str| {
            let value = match name {
                "PGHOST" => "db",
                "PGPORT" => "7000",
                "PGUSER" => "m:e",
                "PGDATABASE" => "shop",
                "PGSSLMODE" => "verify-full",
                "PGSSLROOTCERT" => "/roots.pem",
                "PGCONNECT_TIMEOUT" => "3",
                "PGPASSFILE" => &file,
                _ => return None,
            };
            Some(value.to_owned())
        };
        let address = Address::with_environment("postgres://", &variable).unwrap();
        assert_eq!(address.to_string(), "db:7000/shop");
        assert_eq!(address.config.get_password(), Some(&b"s:e\\cret"[..]));
        assert_eq!(
            address.config.get_connect_timeout(),
            Some(&Duration::from_secs(3))
        );
        assert_eq!(address.tls.mode, SslMode::VerifyFull);
        assert_eq!(address.tls.root.as_deref(), Some("/roots.pem"));
        let said = "postgres://you:own@here:1/there?sslmode=disable";
        let address = Address::with_environment(said, &variable).unwrap();
        assert_eq!(address.to_string(), "here:1/there");
        assert_eq!(address.config.get_password(), Some(&b"own"[..]));
        assert_eq!(address.tls.mode, SslMode::Disable);
        let broken = |name: &str| (name == "PGPORT").then(|| "x".to_owned());
        let report = Address::with_environment("postgres:///shop", &broken)
            .unwrap_err()
            .to_string();
        assert!(report.contains("PGPORT"), "{report}");
    }

    #[test]
    fn trust_is_taken_out() {
        let (rest, mode, root) = ssl_parameters(
            "postgres://u:p?@h/d?sslmode=verify-full&connect_timeout=3&sslrootcert=%2Fa.pem",
        );
        assert_eq!(rest, "postgres://u:p?@h/d?connect_timeout=3");
        assert_eq!(mode.as_deref(), Some("verify-full"));
        assert_eq!(root.as_deref(), Some("/a.pem"));
    }
}
