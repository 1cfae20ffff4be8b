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

    /// Read `postgres://user:password@host:port/database?sslmode=…`. Without a password in it, the
    /// environment variable PGPASSWORD is used.
    pub fn parse(text: &str) -> Result<Self> {
        // What the parser says may quote a part of the password: it is not passed on.
        let bad = |problem: &str| Error::Refused {
            place: "the address of the database".into(),
            problem: format!(
                "{problem}; characters such as @ : / ? # in a password are written as %40 %3A %2F %3F %23"
            ),
        };
        let (rest, mode, root) = ssl_parameters(text);
        let mut config: Config = rest.parse().map_err(|_| {
            bad("expected postgres://user:password@host:port/database, but it cannot be read")
        })?;
        let mode = match mode {
            None => SslMode::Prefer,
            Some(mode) => SslMode::from_name(&mode).ok_or_else(|| {
                bad("expected sslmode to be disable, allow, prefer, require, verify-ca or verify-full")
            })?,
        };
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            config.host("localhost");
        }
        if config.get_password().is_none()
            && let Ok(password) = std::env::var("PGPASSWORD")
        {
            config.password(password);
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        config.application_name("metra");
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
    fn trust_is_taken_out() {
        let (rest, mode, root) = ssl_parameters(
            "postgres://u:p?@h/d?sslmode=verify-full&connect_timeout=3&sslrootcert=%2Fa.pem",
        );
        assert_eq!(rest, "postgres://u:p?@h/d?connect_timeout=3");
        assert_eq!(mode.as_deref(), Some("verify-full"));
        assert_eq!(root.as_deref(), Some("/a.pem"));
    }
}
