"""A mail server: certificate, key, and `starttls`, `tls` or `none`. Prints its port, then each mail as a line of JSON."""

import asyncio
import json
import re
import ssl
import sys
from email import message_from_bytes, policy

from aiosmtpd.smtp import SMTP, AuthResult

certificate, key, security = sys.argv[1:]


class Handler:
    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith("busy@"):
            return "451 4.3.0 try again later"
        if address.startswith("gone@"):
            return "550 5.1.1 no such user"
        envelope.rcpt_tos.append(address)
        return "250 2.1.5 OK"

    async def handle_DATA(self, server, session, envelope):
        mail = message_from_bytes(envelope.original_content, policy=policy.default)
        lines = envelope.original_content.split(b"\r\n")
        is_tls = security == "tls" or session.ssl is not None
        print(json.dumps({
            "headers": [[name, str(value)] for name, value in mail.items()],
            "text": mail.get_content(),
            "has_bare_ends": re.search(rb"(?<!\r)\n|\r(?!\n)", envelope.original_content) is not None,
            "longest_line": max(len(line) for line in lines),
            "is_tls": is_tls,
            "user": getattr(session.auth_data, "login", b"").decode(),
            "sender": envelope.mail_from,
            "recipients": envelope.rcpt_tos,
        }), flush=True)
        return "250 2.0.0 Ok: queued as 42"


def authenticate(server, session, envelope, mechanism, data):
    if data.password == b"busy":
        return AuthResult(success=False, handled=False, message="454 4.7.0 busy hush")
    return AuthResult(success=data.password == b"hush", handled=False, auth_data=data)


async def serve():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    loop = asyncio.get_running_loop()
    starttls = context if security == "starttls" else None

    def session():
        return SMTP(
            Handler(), hostname="sink", tls_context=starttls, require_starttls=starttls is not None,
            auth_require_tls=security == "starttls", authenticator=authenticate, loop=loop,
            auth_exclude_mechanism=["PLAIN"] if security == "tls" else None,
        )

    around = context if security == "tls" else None
    server = await loop.create_server(session, "127.0.0.1", 0, ssl=around)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


asyncio.run(serve())
