//! Requests over HTTP/1.1, as small as they can be.

use std::net::SocketAddr;

use anyhow::Context;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The head and the body of the answer to a request, on a connection of its own.
///
/// # Errors
/// The connection fails, or the status is not 200.
pub(super) async fn get(address: SocketAddr, path: &str) -> anyhow::Result<String> {
    let mut connection = send(address, path, "close").await?;
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).await?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    check_status(path, &answer)?;
    Ok(answer)
}

/// A connection on which the answer to a request comes.
pub(super) async fn stream(address: SocketAddr, path: &str) -> anyhow::Result<TcpStream> {
    send(address, path, "keep-alive").await
}

async fn send(address: SocketAddr, path: &str, connection: &str) -> anyhow::Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let request =
        format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: {connection}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    Ok(stream)
}

/// Checks the first line of an answer.
pub(super) fn check_status(path: &str, answer: &str) -> anyhow::Result<()> {
    let line = answer.lines().next().context("an empty answer")?;
    anyhow::ensure!(line.starts_with("HTTP/1.1 200"), "{path}: {line}");
    Ok(())
}
