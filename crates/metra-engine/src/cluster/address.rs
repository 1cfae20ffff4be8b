//! Where a scheduler is: `df://host:port` as users write it, `host:port` between programs.

use crate::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// The port where a scheduler listens unless told otherwise.
pub const DEFAULT_PORT: u16 = 50050;

/// Host and port of a scheduler.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SchedulerAddress {
    /// Name or IPv4 address. Ballista writes addresses without brackets, so IPv6 goes by name only.
    pub host: String,
    /// Its port.
    pub port: u16,
}

impl SchedulerAddress {
    /// The address for HTTP.
    pub(crate) fn url(&self) -> String {
        format!("http://{}:{}", self.host, self.port)
    }
}

impl fmt::Display for SchedulerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl FromStr for SchedulerAddress {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = |problem: &str| Error::SchedulerAddress {
            found: text.to_owned(),
            problem: problem.to_owned(),
        };
        let rest = match text.split_once("://") {
            Some(("df", rest)) => rest.trim_end_matches('/'),
            Some((scheme, _)) => return Err(wrong(&format!("but the scheme is {scheme}"))),
            None => text,
        };
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) => {
                let port = port
                    .parse()
                    .map_err(|_| wrong("but the port is no number"))?;
                (host, port)
            }
            None => (rest, DEFAULT_PORT),
        };
        if host.is_empty() {
            return Err(wrong("but there is no host"));
        }
        if host.contains([':', '[', ']']) {
            return Err(wrong("but IPv6 addresses must be given by name"));
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if !host.chars().all(plain) {
            return Err(wrong("but the host has characters that no name has"));
        }
        Ok(SchedulerAddress {
            host: host.to_owned(),
            port,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_with_and_without_scheme_and_port() {
        let expected = SchedulerAddress {
            host: "node-1.lan".into(),
            port: 7,
        };
        assert_eq!(
            "df://node-1.lan:7".parse::<SchedulerAddress>().unwrap(),
            expected
        );
        assert_eq!(
            "df://node-1.lan:7/".parse::<SchedulerAddress>().unwrap(),
            expected
        );
        assert_eq!(
            "node-1.lan:7".parse::<SchedulerAddress>().unwrap(),
            expected
        );
        assert_eq!("h".parse::<SchedulerAddress>().unwrap().port, DEFAULT_PORT);
        assert_eq!(expected.to_string(), "node-1.lan:7");
    }

    #[test]
    fn wrong_addresses_say_what_is_wrong() {
        let problem = |text: &str| text.parse::<SchedulerAddress>().unwrap_err().to_string();
        assert!(problem("http://h:1").contains("scheme is http"));
        assert!(problem("df://:1").contains("no host"));
        assert!(problem("df://h:x").contains("no number"));
        assert!(problem("df://h:70000").contains("no number"));
        assert!(problem("df://[::1]:5").contains("IPv6"));
        assert!(problem("df://a b:5").contains("characters"));
    }
}
