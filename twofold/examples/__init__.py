"""What the programs of tutorials import."""
