"""The author that uses a language model: prompt, transport, transcript and rounds."""
