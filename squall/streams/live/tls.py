"""TLS contexts from the options of an address."""

from __future__ import annotations

import ssl

from squall.errors import UsageError
from squall.streams.address import Address

CERTIFICATES = ("ca", "cert", "key")
"""Options with files of certificates.

``ca``: the certificate authorities of the other side. ``cert``: the own certificate with its chain. ``key``: the own
key, if that is in another file.
"""


def context(address: Address, is_safe: bool, serves: bool = False) -> ssl.SSLContext | None:
    """Returns the TLS context of connections, or None if they are not encrypted.

    Args:
        address: The address, with its options.
        is_safe: Whether connections are encrypted.
        serves: Whether this side listens, and shows a certificate. With ``ca``, clients need one as well.

    Raises:
        UsageError: Certificates are missing, or cannot be used.
    """
    options = [name for name in CERTIFICATES if address.get(name)]
    if not is_safe:
        if options:
            raise UsageError(f"`{address.text}` has `{options[0]}`, and does not use TLS", hint=_hint(address))
        return None
    cert, ca = address.get("cert"), address.get("ca")
    if serves and not cert:
        raise UsageError(f"`{address.text}` has no certificate to show", hint="`cert=FILE`, and `key=FILE`")
    try:
        result = _server_context(ca) if serves else ssl.create_default_context(cafile=ca or None)
        if cert:
            result.load_cert_chain(cert, address.get("key") or None)
    except OSError as error:
        what = ", ".join(f"`{address.get(name)}`" for name in options)
        raise UsageError(f"the certificates {what} cannot be used: {error.strerror or error}") from error
    return result


def _server_context(ca: str) -> ssl.SSLContext:
    result = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if ca:
        result.load_verify_locations(ca)
        result.verify_mode = ssl.CERT_REQUIRED
    return result


def _hint(address: Address) -> str:
    return f"`{address.scheme}s:`" if address.scheme in ("http", "ws") else "`tls=yes`"
