"""Messages by SMTP."""

from __future__ import annotations

import json
import smtplib
import ssl
from email.message import EmailMessage

from estream.rule.detection import Detection
from estream.rule.failure import ActionFailed, ActionRefused
from estream.rule.template import fill, in_line
from estream.rule.values import detection_as_data
from estream.spec.model import Email


def message_of(mail: Email, detection: Detection) -> EmailMessage:
    """The message for a detection; the whole detection as JSON if no body is given."""
    message = EmailMessage()
    message["From"] = str(mail.sender or f"estream@{mail.host}")
    message["To"] = ", ".join(map(str, mail.to))
    message["Subject"] = in_line(fill(mail.subject, detection.detected, in_line))
    # A server that sees the same id again can tell that it is the same message.
    message["Message-ID"] = f"<{detection.idempotency_key}@estream>"
    if mail.body is None:
        message.set_content(json.dumps(detection_as_data(detection.detected), indent=2, ensure_ascii=False))
    else:
        message.set_content(fill(mail.body, detection.detected))
    return message


def send(mail: Email, detection: Detection, seconds: float) -> None:
    """Hand the message to the server; ActionFailed and ActionRefused say how it failed."""
    message = message_of(mail, detection)
    server = f"{mail.host}:{mail.port}"
    try:
        with smtplib.SMTP(str(mail.host), mail.port, timeout=seconds) as smtp:
            if mail.tls:
                smtp.starttls(context=ssl.create_default_context())
            if mail.user is not None:
                smtp.login(str(mail.user), str(mail.password or ""))
            smtp.send_message(message)
    except smtplib.SMTPAuthenticationError as error:
        raise ActionRefused(f"{server} does not know the user or the password ({error.smtp_code})") from None
    except smtplib.SMTPRecipientsRefused as error:
        raise ActionFailed(f"{server} refused {', '.join(error.recipients)}") from None
    except smtplib.SMTPResponseException as error:
        kind = ActionRefused if 500 <= error.smtp_code < 600 else ActionFailed
        said = error.smtp_error.decode("utf-8", "replace") if isinstance(error.smtp_error, bytes) else error.smtp_error
        raise kind(f"{server} answered {error.smtp_code} {said}") from None
    except (OSError, smtplib.SMTPException) as error:
        raise ActionFailed(f"{server} could not be reached: {error}") from None
