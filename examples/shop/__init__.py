"""A shop's background work: e-mails, messages and reports."""
