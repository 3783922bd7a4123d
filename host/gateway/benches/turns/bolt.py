"""What `turns` compares the gateway with: a bot on slack_bolt that keeps nothing, decides nothing and asks no model.

It makes the calls that the gateway makes: a placeholder, then the answer in its place. One HTTP session for all.
"""

import asyncio
import os

import aiohttp
from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.web.async_client import AsyncWebClient


async def main():
    async with aiohttp.ClientSession() as session:
        url = os.environ["PMK_SLACK_API_URL"].rstrip("/") + "/"
        client = AsyncWebClient(os.environ["PMK_SLACK_BOT_TOKEN"], base_url=url, session=session)
        app = AsyncApp(client=client)

        @app.event("message")
        async def answer(event):
            posted = await client.chat_postMessage(channel=event["channel"], text="Thinking…")
            await client.chat_update(channel=event["channel"], ts=posted["ts"], text=f"echo: {event['text']}")

        await AsyncSocketModeHandler(app, os.environ["PMK_SLACK_APP_TOKEN"]).start_async()


asyncio.run(main())
