"""The author that asks a language model: prompt, transport, transcript and rounds, each apart."""
