//! The streams between the server and its client: stdin and stdout. Most clients give pipes; clients in Node and sshd give
//! Unix sockets. Two of a kind cost no thread that waits for them; with anything else, tokio's threads read and write.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustix::net::{RecvFlags, SendFlags, SocketType};
use tokio::io::unix::{AsyncFd, AsyncFdReadyGuard};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

type Input = Box<dyn AsyncRead + Send + Unpin>;
type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// Opens stdin and stdout of this process.
pub(super) fn open() -> (Input, Output) {
    if let (Some(input), Some(output)) = (Socket::of(io::stdin()), Socket::of(io::stdout())) {
        return (Box::new(input), Box::new(output));
    }
    let (input, output) = rmcp::transport::io::stdio_pipes();
    (Box::new(input), Box::new(output))
}

/// A socket that other processes may have as well. It is never set to be non-blocking, which would change it for them too:
/// each single read and write says that it doesn't wait.
struct Socket(AsyncFd<OwnedFd>);

impl Socket {
    #[expect(
        deprecated,
        reason = "its successor is unsafe for what other types may do, and an OwnedFd may not"
    )]
    fn of(stream: impl AsFd) -> Option<Self> {
        let fd = stream.as_fd();
        if rustix::net::sockopt::socket_type(fd) != Ok(SocketType::STREAM) {
            return None;
        }
        AsyncFd::new(fd.try_clone_to_owned().ok()?).ok().map(Self)
    }
}

/// Does something with a socket that is ready; None where it wasn't.
fn attempt<T>(
    mut ready: AsyncFdReadyGuard<'_, OwnedFd>,
    mut work: impl FnMut(&OwnedFd) -> rustix::io::Result<T>,
) -> Option<io::Result<T>> {
    ready.try_io(|fd| Ok(rustix::io::retry_on_intr(|| work(fd.get_ref()))?)).ok()
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let ready = ready!(self.0.poll_read_ready(cx))?;
            let unfilled = buffer.initialize_unfilled();
            let read = attempt(ready, |fd| rustix::net::recv(fd, &mut *unfilled, RecvFlags::DONTWAIT));
            if let Some(read) = read {
                buffer.advance(read?.0);
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            let ready = ready!(self.0.poll_write_ready(cx))?;
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            if let Some(written) = attempt(ready, |fd| rustix::net::send(fd, bytes, flags)) {
                return Poll::Ready(written);
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
