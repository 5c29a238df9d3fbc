"""`lacuna replay`: logs of clicks, the encoder, the paper's protocol, click-through rates."""
