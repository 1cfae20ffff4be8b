//! Where tables and large settings lie: local disk and stores that speak S3, by their address.
//!
//! Stores of the second kind are set up from the environment (`AWS_ACCESS_KEY_ID`,
//! `AWS_ENDPOINT`, `AWS_ALLOW_HTTP`, …) the first time their bucket is named, on the machine that
//! asks and on every executor alike: no job ever contains a key.

use crate::{Error, Result};
use datafusion::error::{DataFusionError, Result as EngineResult};
use datafusion::execution::object_store::{
    DefaultObjectStoreRegistry, ObjectStoreRegistry, ObjectStoreUrl,
};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use object_store::aws::AmazonS3Builder;
use object_store::path::Path as StorePath;
use object_store::{ObjectStore, ObjectStoreExt};
use std::sync::Arc;
use url::Url;

/// A place in a store: which store, and the path inside it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Place {
    /// The store, such as `file:///` or `s3://bucket/`.
    pub store: ObjectStoreUrl,
    /// The path inside it.
    pub path: StorePath,
    /// Whether the address named a folder by its last slash.
    pub is_folder: bool,
}

impl Place {
    /// Read an address: a local path, `file://…` or `s3://bucket/key`.
    pub(crate) fn parse(address: &str) -> Result<Self> {
        let wrong = |problem: String| Error::table(address, problem);
        let url = match Url::parse(address) {
            Ok(url) if url.scheme().len() > 1 => url,
            _ => {
                let path = std::path::absolute(address).map_err(|e| wrong(e.to_string()))?;
                let as_url = match address.ends_with('/') || path.is_dir() {
                    true => Url::from_directory_path(&path),
                    false => Url::from_file_path(&path),
                };
                as_url.map_err(|()| wrong("is no path that can be read".into()))?
            }
        };
        if !["file", "s3"].contains(&url.scheme()) {
            return Err(wrong(format!(
                "expected a path, file:// or s3://, but found the scheme {:?}",
                url.scheme()
            )));
        }
        let store = &url[..url::Position::BeforePath];
        let store = match url.scheme() {
            "file" => ObjectStoreUrl::local_filesystem(),
            _ => ObjectStoreUrl::parse(store).map_err(|e| wrong(e.to_string()))?,
        };
        let path = StorePath::from_url_path(url.path()).map_err(|e| wrong(e.to_string()))?;
        let is_folder = url.path().ends_with('/');
        Ok(Place {
            store,
            path,
            is_folder,
        })
    }

    /// The address again.
    pub(crate) fn address(&self) -> String {
        format!("{}{}", self.store.as_str(), self.path)
    }

    /// A place inside this folder.
    pub(crate) fn join(&self, name: &str) -> Place {
        Place {
            store: self.store.clone(),
            path: self.path.clone().join(name),
            is_folder: false,
        }
    }

    /// Read the whole object.
    pub(crate) async fn read(&self, runtime: &RuntimeEnv) -> Result<Vec<u8>> {
        let failed = |problem: String| Error::table(self.address(), problem);
        let store = (runtime.object_store(&self.store)).map_err(|e| failed(e.to_string()))?;
        let found = store.get(&self.path).await;
        let bytes = found.map_err(|e| failed(e.to_string()))?.bytes().await;
        Ok(bytes.map_err(|e| failed(e.to_string()))?.to_vec())
    }

    /// Bytes of the object, where it is there.
    pub(crate) async fn size(&self, runtime: &RuntimeEnv) -> Option<u64> {
        let store = runtime.object_store(&self.store).ok()?;
        Some(store.head(&self.path).await.ok()?.size)
    }

    /// Write the whole object; it is there as a whole or not at all.
    pub(crate) async fn write(&self, runtime: &RuntimeEnv, bytes: Vec<u8>) -> Result<()> {
        let failed = |problem: String| Error::table(self.address(), problem);
        let store = (runtime.object_store(&self.store)).map_err(|e| failed(e.to_string()))?;
        let written = store.put(&self.path, bytes.into()).await;
        written.map(drop).map_err(|e| failed(e.to_string()))
    }
}

/// The address of a folder, with a slash at its end.
pub(crate) fn folder(address: &str) -> String {
    match address.ends_with('/') {
        true => address.to_owned(),
        false => format!("{address}/"),
    }
}

/// The stores that every machine of a cluster knows.
pub(crate) fn registry() -> Arc<dyn ObjectStoreRegistry> {
    Arc::new(Registry::default())
}

/// The surroundings in which plans run: the stores, no limit of memory of the engine's own.
pub(crate) fn runtime() -> Result<Arc<RuntimeEnv>> {
    let builder = RuntimeEnvBuilder::new().with_object_store_registry(registry());
    (builder.build_arc()).map_err(|e| Error::engine("setting up the engine", e))
}

#[derive(Debug, Default)]
struct Registry {
    known: DefaultObjectStoreRegistry,
}

impl ObjectStoreRegistry for Registry {
    fn register_store(
        &self,
        url: &Url,
        store: Arc<dyn ObjectStore>,
    ) -> Option<Arc<dyn ObjectStore>> {
        self.known.register_store(url, store)
    }

    fn get_store(&self, url: &Url) -> EngineResult<Arc<dyn ObjectStore>> {
        if let Ok(store) = self.known.get_store(url) {
            return Ok(store);
        }
        let bucket = url.host_str().filter(|_| url.scheme() == "s3");
        let bucket = bucket.ok_or_else(|| {
            let problem = format!("expected file:// or s3://bucket, but found {url}");
            DataFusionError::Configuration(problem)
        })?;
        let store = AmazonS3Builder::from_env().with_bucket_name(bucket).build();
        let store: Arc<dyn ObjectStore> = Arc::new(store?);
        self.known.register_store(url, store.clone());
        Ok(store)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let place = Place::parse("s3://bucket/a/b.parquet").unwrap();
        assert_eq!(place.store.as_str(), "s3://bucket/");
        assert_eq!(
            (place.path.as_ref(), place.is_folder),
            ("a/b.parquet", false)
        );
        assert_eq!(place.address(), "s3://bucket/a/b.parquet");
        let folder = Place::parse("s3://bucket/a/").unwrap();
        assert!(folder.is_folder);
        assert_eq!(folder.join("c").address(), "s3://bucket/a/c");
        let local = Place::parse("/tmp/with space.parquet").unwrap();
        assert_eq!(local.path.as_ref(), "tmp/with space.parquet");
        assert_eq!(local.store.as_str(), "file:///");
        let error = Place::parse("gs://bucket/x").unwrap_err().to_string();
        assert!(error.contains("\"gs\""), "{error}");
    }

    #[tokio::test]
    async fn objects_are_written_and_read() {
        let folder = std::env::temp_dir().join(format!("metra-stores-{}", std::process::id()));
        let place = Place::parse(&format!("{}/", folder.display())).unwrap();
        let runtime = runtime().unwrap();
        let file = place.join("x y.bin");
        file.write(&runtime, vec![1, 2, 3]).await.unwrap();
        assert_eq!(file.read(&runtime).await.unwrap(), vec![1, 2, 3]);
        let error = place.join("none").read(&runtime).await.unwrap_err();
        assert!(error.to_string().contains("none"), "{error}");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
