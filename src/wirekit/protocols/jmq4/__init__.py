"""JMQ4, both dialects: connections and the text in ``attributes``."""
