//! Keys of clients. A key gives one scope: `read` for models, searches and feedback, `admin` for these and for reloading.

use crate::options::ServerOptions;
use crate::refusal::Refusal;
use crate::{Error, Result};
use axum::http::{HeaderMap, header};
use std::path::Path;

/// What a key allows; the later includes the earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    /// Models, searches, feedback, metrics.
    Read,
    /// Reloading, too.
    Admin,
}

impl Scope {
    fn name(self) -> &'static str {
        match self {
            Scope::Read => "read",
            Scope::Admin => "admin",
        }
    }
}

/// Digests of the keys: what is compared has one length and does not show the keys.
pub(crate) struct Keys(Vec<(Scope, blake3::Hash)>);

/// Shorter keys could be guessed.
const SHORTEST: usize = 16;

impl Keys {
    /// The keys of a server, `None` where it asks for none.
    pub(crate) fn of(options: &ServerOptions) -> Result<Option<Self>> {
        let mut all = Vec::new();
        if let Some(path) = &options.keys {
            check_private(path)?;
            let text = std::fs::read_to_string(path).map_err(|e| Error::io(path, e))?;
            let place = path.display().to_string();
            all.extend(parse(&place, text.lines())?);
        }
        if let Some(text) = &options.environment_keys {
            all.extend(parse("METRA_KEYS", text.split(','))?);
        }
        match (all.is_empty(), &options.keys) {
            (false, _) => Ok(Some(Keys(all))),
            (true, Some(path)) => Err(Error::file(
                path,
                "expected at least one key, but found none",
            )),
            (true, None) if options.environment_keys.is_some() => Err(Error::setting(
                "METRA_KEYS",
                "expected at least one key, but found none",
            )),
            (true, None) => Ok(None),
        }
    }

    /// An error unless the request has a key with this scope.
    pub(crate) fn check(&self, headers: &HeaderMap, scope: Scope) -> Result<(), Refusal> {
        let given = headers.get(header::AUTHORIZATION);
        let given = given.and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        let given = blake3::hash(given.unwrap_or_default().trim().as_bytes());
        // Digests compare in constant time, and all of them are compared.
        let found = (self.0.iter())
            .filter(|(_, key)| *key == given)
            .map(|(scope, _)| *scope)
            .max();
        match found {
            None => Err(Refusal::unauthorised()),
            Some(found) if found < scope => Err(Refusal::forbidden(scope.name())),
            Some(_) => Ok(()),
        }
    }
}

fn parse<'a>(
    place: &str,
    lines: impl Iterator<Item = &'a str>,
) -> Result<Vec<(Scope, blake3::Hash)>> {
    let mut all = Vec::new();
    for (number, line) in lines.enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        // No message quotes a line: it may hold a key.
        let wrong = |problem: String| {
            let number = number + 1;
            Error::setting(place, format!("entry {number}: {problem}"))
        };
        let Some((scope, key)) = line.split_once(char::is_whitespace) else {
            return Err(wrong("expected `read KEY` or `admin KEY`".into()));
        };
        let scope = match scope {
            "read" => Scope::Read,
            "admin" => Scope::Admin,
            _ => {
                return Err(wrong(
                    "expected the scope read or admin before the key".into(),
                ));
            }
        };
        let key = key.trim();
        if key.len() < SHORTEST || key.contains(char::is_whitespace) {
            let problem =
                format!("expected a key of at least {SHORTEST} characters without blanks");
            return Err(wrong(problem));
        }
        all.push((scope, blake3::hash(key.as_bytes())));
    }
    Ok(all)
}

/// An error where other users can read a file of secrets. A file of root's may be read by a group: that is how Kubernetes and systemd hand
/// secrets to a service without rights.
#[cfg(unix)]
pub(crate) fn check_private(path: &Path) -> Result<()> {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::metadata(path).map_err(|e| Error::io(path, e))?;
    let mode = found.mode() & 0o777;
    let refused = match found.uid() {
        0 => 0o037,
        _ => 0o077,
    };
    match mode & refused {
        0 => Ok(()),
        _ => Err(Error::file(
            path,
            format!(
                "expected a file that its owner alone can read (chmod 600), but its mode is {mode:03o}"
            ),
        )),
    }
}

/// Permissions of other systems are not looked at.
#[cfg(not(unix))]
pub(crate) fn check_private(_: &Path) -> Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    const READ: &str = "0123456789abcdef-read";
    const ADMIN: &str = "0123456789abcdef-admin";

    fn headers(key: &str) -> HeaderMap {
        let value = HeaderValue::from_str(key).unwrap();
        HeaderMap::from_iter([(header::AUTHORIZATION, value)])
    }

    #[test]
    fn scopes_include_each_other() {
        let text = format!("# keys\n\nread {READ}\n admin   {ADMIN}\n");
        let keys = Keys(parse("here", text.lines()).unwrap());
        let answer = |key: &str, scope| keys.check(&headers(key), scope).err().map(|e| e.code);
        let bearer = |key: &str| format!("Bearer {key}");
        assert_eq!(answer(&bearer(READ), Scope::Read), None);
        assert_eq!(answer(&bearer(READ), Scope::Admin), Some("forbidden"));
        assert_eq!(answer(&bearer(ADMIN), Scope::Admin), None);
        for wrong in ["", "Bearer ", READ, &bearer("0123456789abcdef"), "Basic x"] {
            assert_eq!(answer(wrong, Scope::Read), Some("unauthorized"), "{wrong}");
        }
        let none = keys.check(&HeaderMap::new(), Scope::Read);
        assert_eq!(none.unwrap_err().code, "unauthorized");
    }

    #[test]
    fn bad_entries_are_named_and_not_quoted() {
        for (text, problem) in [
            ("read short", "at least 16"),
            ("write 0123456789abcdef", "read or admin"),
            ("0123456789abcdef", "`read KEY`"),
            ("read 0123456789abcdef 0123456789abcdef", "without blanks"),
        ] {
            let error = parse("here", text.lines()).unwrap_err().to_string();
            assert!(
                error.contains(problem) && error.contains("entry 1"),
                "{error}"
            );
            assert!(!error.contains("0123"), "{error}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn files_that_others_can_read_are_refused() {
        use std::os::unix::fs::PermissionsExt;
        let file = tempfile::NamedTempFile::new().unwrap();
        let set = |mode| {
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(file.path(), permissions).unwrap();
        };
        set(0o644);
        let error = check_private(file.path()).unwrap_err().to_string();
        assert!(
            error.contains("chmod 600") && error.contains("644"),
            "{error}"
        );
        set(0o600);
        check_private(file.path()).unwrap();
    }
}
