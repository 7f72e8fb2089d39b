"""An application of its own that carries The Deck below `/ops/deck`."""

import json
import socket

import uvicorn
from deck_shop import app
from fastapi import FastAPI

site = FastAPI()
app.mount_deck(site, "/ops/deck")
listening = socket.create_server(("127.0.0.1", 0))
# The socket takes connections from here on; they wait until the server serves them.
print(
    json.dumps({"event": "deck_ready", "url": f"http://127.0.0.1:{listening.getsockname()[1]}/ops/deck/"}), flush=True
)
uvicorn.Server(uvicorn.Config(site, log_level="warning")).run(sockets=[listening])
