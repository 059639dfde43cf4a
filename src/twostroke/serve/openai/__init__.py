"""The OpenAI wire format: `parse` turns bodies into requests, `render` turns events into bodies.  No HTTP here."""
