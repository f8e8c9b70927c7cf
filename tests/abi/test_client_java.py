# SPDX-License-Identifier: Apache-2.0
"""The Maven package com.microsoft.onnxruntime:onnxruntime on the library that it brings and on ours.

Its native part asks for the symbol version of its own release, so the real library is the one in
the package.
"""
import zipfile

import pytest

from client_steps import HERE, fetch, make, need, need_version

VERSION = "1.29.0"
PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1"
BINDING = "libonnxruntime4j_jni.so"


@pytest.fixture(scope="module")
def package(clients_cache):
    """The jar."""
    folder = clients_cache / "java"
    jar = folder / f"onnxruntime-{VERSION}.jar"
    if not jar.is_file():
        need("mvn")
        fetch(jar.name, ["mvn", "-q", "-B", f"{PLUGIN}:copy",
                         f"-Dartifact=com.microsoft.onnxruntime:onnxruntime:{VERSION}",
                         f"-DoutputDirectory={folder}"])
    return jar


@pytest.fixture(scope="module")
def classes(package, clients_cache):
    """The folder of the client's classes."""
    need_version("javac", (11, 0))
    need("java")
    folder = clients_cache / "java/classes"
    make("Client.java", ["javac", "-Xlint:all", "-encoding", "UTF-8", "-cp", package, "-d", folder,
                         HERE / "clients/java/Client.java"])
    return folder


def unpack(package, name, folder):
    folder.mkdir(exist_ok=True)
    target = folder / name
    if not target.is_file():
        with zipfile.ZipFile(package) as jar:
            target.write_bytes(jar.read(f"ai/onnxruntime/native/linux-x64/{name}"))
    return target


def test_transcript(package, classes, clients_cache, transcripts, our_ort):
    real, ours = clients_cache / "java/real", clients_cache / "java/ours"
    unpack(package, "libonnxruntime.so", real)
    for folder in (real, ours):
        unpack(package, BINDING, folder)
    library = ours / "libonnxruntime.so"
    library.unlink(missing_ok=True)
    library.symlink_to(our_ort.resolve())

    def on(folder):
        return ["java", f"-Donnxruntime.native.path={folder}", "-Dfile.encoding=UTF-8",
                "-Dstdout.encoding=UTF-8", "-cp", f"{package}:{classes}", "Client", "models"], {}

    transcripts("java", on(real), on(ours))
