"""What the programs of tutorials import, by tutorial."""
