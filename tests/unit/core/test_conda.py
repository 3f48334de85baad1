"""A conda environment becomes requirements that mean the same on PyPI, or is refused with what to write."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from parallelrun_core.spec import conda
from parallelrun_core.spec.conda import python_of, requirements_of
from parallelrun_core.spec.python_versions import is_too_old
from supply_chain.conda_names import pypi_names
from supply_chain.locked import locked

ROOT = Path(__file__).parents[3]
ENTRIES: list[tuple[object, list[str]]] = [
    ("pandas", ["pandas"]),
    ("pandas=2.1", ["pandas==2.1.*"]),
    ("pandas=2.1.*", ["pandas==2.1.*"]),
    ("pandas==2.1.0", ["pandas==2.1.0"]),
    ("pandas>=2.1,<3", ["pandas<3,>=2.1"]),
    ("pandas =2.1.0rc1", ["pandas==2.1.0rc1"]),
    ("conda-forge::pandas=2.1.4=py311_0", ["pandas==2.1.4"]),
    ("pandas==2.1.0=py311_0", ["pandas==2.1.0"]),
    ("pandas=2.1.*,>=2.1.3,!=2.1.4*,~=2.1.*", ["pandas!=2.1.4.*,==2.1.*,>=2.1.3,~=2.1"]),
    ("pandas=*", ["pandas"]),
    ("pandas *", ["pandas"]),
    ("pandas=*=py311_0", ["pandas"]),
    ("numpy 1.26", ["numpy==1.26"]),
    ("numpy  1.26.4 py311h64a7726_0", ["numpy==1.26.4"]),
    ("numpy 1.26.*", ["numpy==1.26.*"]),
    ("conda-forge::numpy 1.26*", ["numpy==1.26.*"]),
    ("numpy >=1.26", ["numpy>=1.26"]),
    ("numpy >= 1.26 , <2 py311*", ["numpy<2,>=1.26"]),
    ("numpy * *openblas*", ["numpy"]),
    ("numpy 1.26.*,>=1.26.1", ["numpy==1.26.*,>=1.26.1"]),
    ("numpy=1.26 2*", ["numpy==1.26"]),  # conda's rule: with a build, it is this version
    ("numpy=1.26=py|x", ["numpy==1.26"]),
    ("conda-forge::numpy[version='>=1.26,<2']", ["numpy<2,>=1.26"]),
    ("https://conda.example/conda-forge::numpy[version=1.26,channel='conda-forge']", ["numpy==1.26"]),
    ("conda-forge[linux-64]::numpy[channel=conda-forge]", ["numpy"]),
    ("pip-tools[version='7.4.1']", ["pip-tools==7.4.1"]),  # of which pip and python are only the beginning
    ("python-dateutil 2.8.*,>=2.8.1", ["python-dateutil==2.8.*,>=2.8.1"]),
    ("pytorch=2.1[build=*cuda*]", ["torch==2.1.*"]),
    ('pytorch[version=">=2.1",build=*cuda*]', ["torch>=2.1"]),
    ("blas=1.0=mkl", []),
    ("pytorch-cuda=11.8", []),
    ("pip=23", []),
    ("python=3.11", []),
    ("pytorch-gpu", ["torch"]),
    ("pytorch=2.1=*cuda*", ["torch==2.1"]),
    ("redis-py", ["redis"]),
    ("brotli-python=1.1.0", ["brotli==1.1.0.*"]),
    ("ruamel_yaml", ["ruamel-yaml"]),
    ("cuda-python", ["cuda-python"]),  # these four are no C libraries, as their names may suggest
    ("libclang", ["libclang"]),
    ("libpysal", ["libpysal"]),
    ("openmpi", ["openmpi"]),
    ("opencv=4.8.1=py311h1e5b4d6_3", ["opencv-python==4.8.1.*"]),  # there, it is 4.8.1.78
    ("py-opencv==4.8.1,!=4.8.2", ["opencv-python!=4.8.2.*,==4.8.1.*"]),
    ("opencv>=4.8.1", ["opencv-python>=4.8.1"]),
    ("opencv>4.8.1,<=4.9", ["opencv-python<4.9.1,>=4.8.2"]),
    ("opencv>4,!=4.8", ["opencv-python!=4.8.0.*,>=4.0.1"]),
    ("opencv=4,<=4.9.*", ["opencv-python<4.9.1,==4.*"]),
    (
        {"pip": [f"git+https://h.example:8443/y@{'0' * 40}#egg=y[dev]&subdirectory=z"]},
        [f"y[dev] @ git+https://h.example:8443/y@{'0' * 40}#subdirectory=z"],
    ),
    (
        {"pip": [f"x @ https://h.example/x.zip#subdirectory=z&sha256={'0' * 64}", 'six; python_version in "3.8, 3.9"']},
        [f"x @ https://h.example/x.zip#sha256={'0' * 64}&subdirectory=z", 'six ; python_version in "3.8, 3.9"'],
    ),
    ("lit-nlp", ["lit-nlp"]),
    ("iris", ["scitools-iris"]),
    ("ray-tune=2.9", ["ray[tune]==2.9.*"]),
    ({"pip": ["six>=1", "x # why"]}, ["six>=1", "x"]),
    ({"pip": ["Six==1.16.0 \\", "  --hash=sha256:" + "0" * 64]}, ["six==1.16.0 --hash=sha256:" + "0" * 64]),
]


def test_packages_are_requirements_in_their_order() -> None:
    document = {"dependencies": [entry for entry, _ in ENTRIES]}
    assert requirements_of(document) == [line for _, lines in ENTRIES for line in lines]


REFUSED: list[tuple[object, str]] = [
    ("cudatoolkit=11", "not on PyPI.*a CUDA of their own.*in the image of the nodes$"),
    ("cudatoolkit 11.8", "not on PyPI.*a CUDA of their own.*in the image of the nodes$"),
    ("graphviz=12", "not on PyPI"),
    ("conda-forge::_libgcc_mutex=0.1=main", "not on PyPI"),
    ("r-base", "not on PyPI"),
    ("gcc_linux-64", "not on PyPI"),
    ("pandas 2.1|2.3", "'pandas 2.1|2.3' has alternatives.*write one range"),
    ("pandas>=2.1,<2.3|>=3", "alternatives.*write one range"),
    ("numpy[version='1.26|1.27']", "alternatives.*write one range"),
    ("pip 23|24", "alternatives"),
    ("pandas>=2.1,foo", "'pandas>=2.1,foo' can't be read: 'foo'"),
    ("pandas>=2.1,", "not a package"),
    ("pandas=2.1.=3.", "can't be read"),
    ("pandas===2.1", "can't be read"),
    ("pandas~=2", "no form for the version '~=2'"),
    ("tzdata=2023c", "numbers its releases otherwise"),
    ("a b", "can't be read: 'b'"),
    ("=1.2", "as in numpy>=1.26,<2"),
    ("pandas*", "as in numpy>=1.26,<2"),
    ("pandas-2.1-py_0.conda", "as in numpy>=1.26,<2"),
    ("a.\nb", "not a package"),
    ("a" * 600, "not a package"),
    ("dask[complete]>=2024", "as in numpy>=1.26,<2, and what only pip reads, as a URL or extras, under pip:"),
    ("python-dotenv[cli]", "'python-dotenv.cli.' is not a package.*extras, under pip:"),
    ("git+https://h.example/x", "URL or extras, under pip:"),
    (7, "neither"),
    ({"pip": "six"}, "neither"),
    ({"pip": ["-r other.txt"]}, "other files"),
    ({"pip": ["-e ."]}, "folder"),
    ({"pip": ["-e git+https://h.example/x"]}, "without -e"),
    ({"pip": ["./folder"]}, "folder"),
    ({"pip": ["x.whl"]}, "folder or file"),
    ({"pip": ["--pre six"]}, "a line of its own"),
    ({"pip": ["--index-url"]}, "a line of its own"),
    ({"pip": ["six --index-url https://h.example"]}, "a line of its own"),
    ({"pip": ["--no-deps"]}, "remove this option"),
    ({"pip": ["six=1.16"]}, "Expected"),
    ({"pip": ["x @ https://user:secret@example.org/x.whl"]}, "password"),
    ({"pip": ["x @ https://user:$secret@example.org/x.whl"]}, "password"),
    ({"pip": [f"x @ https://user:a/{'secret' * 99}@example.org/x.whl"]}, "password"),
    ({"pip": ["--index-url https://user:ä-secret@example.org --trusted-host h"]}, "password"),
    ({"pip": ["x @ git+ssh://secret@example.org/x"]}, "ssh"),
    ("git+https://user:8443/secret@main", "password, or a port and no commit"),
    ({"pip": ["x @ https://user:123/secret@example.org/x.whl"]}, "password"),
    ({"pip": [{"--index-url": "https://user:secret@example.org"}]}, "a text"),
    ({"pip": "x @ https://user:secret@example.org/x.whl"}, "password"),
    ({"pip": [f"x @ git+https://h.example/x?y=@{'0' * 40}"]}, "40 digits"),
    ({"pip": [f"x @ git+https://h.example/x@{'0' * 40}#egg=x(y)"]}, "read behind"),
    ({"pip": [f"x @ https://h.example/x.zip#sha256={'0' * 64}&a=b"]}, "behind #"),
    ("cudatoolkit=11.8", "a CUDA of their own"),
    ("https://example.org/t/secret/channel::numpy=1|2", "alternatives"),
    ("numpy=1|2[channel='https://example.org/t/secret/channel']", "alternatives"),
    ("https://example.org/t/secret/channel:numpy", "is not a package of conda"),
    ({"pip": [f"x @ https://h.example/x.whl#sha256={'0' * 64} --hash=sha256:{'1' * 64}"]}, "one hash"),
    ({"pip": [f"x @ git+https://h.example/x@{'0' * 40} --hash=sha256:{'0' * 64}"]}, "has no hash"),
]


def test_what_cannot_be_installed_is_told_by_its_name() -> None:
    for entry, why in REFUSED:
        with pytest.raises(ValueError, match=why) as caught:
            requirements_of({"dependencies": [entry]})
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "keys, why",
    [({"dependancies": ["six"]}, "did you mean 'dependencies'"), ({"variables": {"A": "1"}}, "environment_variables")],
)
def test_keys_without_effect_are_refused(keys: dict[str, object], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        requirements_of({"name": "scoring", "channels": [], "prefix": "/x", **keys})


def test_the_version_of_python_is_found() -> None:
    versions = [
        ("python=3.11", "3.11", False),
        ("python 3.11", "3.11", False),
        ("python==3.12.1", "3.12.1", False),
        ("python 3.11.* *_cpython", "3.11", False),
        ("https://h.example:8080/channel::python=3.11", "3.11", False),
        ("python>=3.11,<3.13", ">=3.11,<3.13", False),
        ("python>=3.6,!=3.8", ">=3.6,!=3.8", False),
        ("python", "", False),
        ("python=*", "", False),
        ("python=3.7", "3.7", True),
        ("python=2", "2", True),
        ("python<3.8", "<3.8", True),
        ("python>=2.7,<3.8", ">=2.7,<3.8", True),
        ("python=3.7.0rc1", "==3.7.0rc1", True),
    ]
    for entry, version, too_old in versions:
        assert python_of({"dependencies": ["six", entry, "python-dotenv=1.0"]}) == version
        assert is_too_old(version) is too_old, entry


@pytest.mark.parametrize(
    "entries, why", [(["python=3.11|3.12"], "alternatives"), (["python=3.11", "python<3.11"], "two versions")]
)
def test_versions_of_python_that_cannot_be_told_are_refused(entries: list[str], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        python_of({"dependencies": entries})


EXPORT = """
name: scoring
channels: [pytorch, nvidia, conda-forge, defaults]
dependencies:
  - _libgcc_mutex=0.1=main
  - _openmp_mutex=5.1=1_gnu
  - aom=3.6.0=h6a678d5_0
  - blas=1.0=mkl
  - boost-cpp=1.82.0=hdb19cb5_2
  - brotli-python=1.0.9=py311h6a678d5_7
  - bzip2=1.0.8=h5eee18b_5
  - c-ares=1.19.1=h5eee18b_0
  - ca-certificates=2023.12.12=h06a4308_0
  - certifi=2023.11.17=py311h06a4308_0
  - cffi=1.16.0=py311h5eee18b_0
  - charset-normalizer=2.0.4=pyhd3eb1b0_0
  - cryptography=41.0.7=py311hdda0065_0
  - cuda-cudart=11.8.89=0
  - cuda-libraries=11.8.0=0
  - cuda-nvrtc=11.8.89=0
  - ffmpeg=4.3=hf484d3e_0
  - filelock=3.13.1=py311h06a4308_0
  - freetype=2.12.1=h4a9f257_0
  - geos=3.8.0=he6710b0_0
  - giflib=5.2.1=h5eee18b_3
  - gmp=6.2.1=h295c915_3
  - gnutls=3.6.15=he1e5248_0
  - hdf5=1.14.3=nompi_h4f84152_100
  - icu=73.1=h6a678d5_0
  - idna=3.4=py311h06a4308_0
  - intel-openmp=2023.1.0=hdb19cb5_46306
  - jinja2=3.1.2=py311h06a4308_0
  - jpeg=9e=h5eee18b_1
  - krb5=1.20.1=h143b758_1
  - lame=3.100=h7b6447c_0
  - lcms2=2.12=h3be6417_0
  - ld_impl_linux-64=2.38=h1181459_1
  - lerc=3.0=h295c915_0
  - libcublas=11.11.3.6=0
  - libffi=3.4.4=h6a678d5_0
  - libgcc-ng=11.2.0=h1234567_1
  - libgomp=11.2.0=h1234567_1
  - libpng=1.6.39=h5eee18b_0
  - libstdcxx-ng=11.2.0=h1234567_1
  - libtiff=4.5.1=h6a678d5_0
  - llvm-openmp=14.0.6=h9e868ea_0
  - lz4-c=1.9.4=h6a678d5_0
  - markupsafe=2.1.3=py311h5eee18b_0
  - mkl=2023.1.0=h213fc3f_46344
  - mkl-service=2.4.0=py311h5eee18b_1
  - mkl_fft=1.3.8=py311h5eee18b_0
  - mkl_random=1.2.4=py311hdb19cb5_0
  - mpmath=1.3.0=py311h06a4308_0
  - ncurses=6.4=h6a678d5_0
  - nettle=3.7.3=hbbd107a_1
  - networkx=3.1=py311h06a4308_0
  - numpy=1.26.2=py311h08b1b3b_0
  - numpy-base=1.26.2=py311hf175353_0
  - opencv=4.8.1=py311h1e5b4d6_3
  - openh264=2.1.1=h4ff587b_0
  - openjpeg=2.4.0=h3ad879b_0
  - openssl=3.0.12=h7f8727e_0
  - pandas=2.1.4=py311ha02d727_0
  - pillow=10.0.1=py311ha6cbd5a_0
  - pip=23.3.1=py311h06a4308_0
  - poppler=22.12.0=h9614445_3
  - pyopenssl=23.2.0=py311h06a4308_0
  - python=3.11.5=h955ad1f_0
  - python-dateutil=2.8.2=pyhd3eb1b0_0
  - pytorch=2.1.2=py3.11_cuda11.8_cudnn8.7.0_0
  - pytorch-cuda=11.8=h7e8668a_5
  - pytorch-mutex=1.0=cuda
  - pytz=2023.3.post1=py311h06a4308_0
  - pyyaml=6.0.1=py311h5eee18b_0
  - readline=8.2=h5eee18b_0
  - requests=2.31.0=py311h06a4308_0
  - setuptools=68.2.2=py311h06a4308_0
  - sqlite=3.41.2=h5eee18b_0
  - sympy=1.12=py311h06a4308_0
  - tbb=2021.8.0=hdb19cb5_0
  - tk=8.6.12=h1ccaba5_0
  - torchtriton=2.1.0=py311
  - torchvision=0.16.2=py311_cu118
  - typing_extensions=4.7.1=py311h06a4308_0
  - tzdata=2023c=h04d1e81_0
  - wheel=0.41.2=py311h06a4308_0
  - xz=5.4.5=h5eee18b_0
  - yaml=0.2.5=h7b6447c_0
  - zlib=1.2.13=h5eee18b_0
  - zstd=1.5.5=hc292b87_0
  - pip:
      - azureml-core==1.54.0
      - six==1.16.0
prefix: /home/anna/miniconda3/envs/scoring
"""
FROM_HISTORY = """
name: scoring
channels: [pytorch, nvidia, conda-forge, defaults]
dependencies:
  - python=3.11
  - numpy
  - pandas==2.1.4
  - pytorch::pytorch=2.1
  - torchvision
  - conda-forge::opencv=4.8.1
  - scikit-learn[version='>=1.3,<2']
prefix: /home/anna/miniconda3/envs/scoring
"""


def test_whole_export_of_conda_is_refused_with_how_to_export_less() -> None:
    document = yaml.safe_load(EXPORT)
    with pytest.raises(
        ValueError, match=r"'_libgcc_mutex', '_openmp_mutex', 'aom', .* and 40 more are not on PyPI"
    ) as told:
        requirements_of(document)
    assert "`conda env export --from-history`" in str(told.value)

    of_python = [entry for entry in document["dependencies"] if not isinstance(entry, str) or "=py" in entry]
    lines = requirements_of({"dependencies": of_python})
    assert {"torch==2.1.2", "triton==2.1.0", "opencv-python==4.8.1.*", "pytz==2023.3.post1", "brotli==1.0.9"} < {*lines}
    assert lines[-2:] == ["azureml-core==1.54.0", "six==1.16.0"]
    assert python_of(document) == "3.11.5"


def test_export_from_history_is_read() -> None:
    lines = [
        "numpy",
        "pandas==2.1.4",
        "torch==2.1.*",
        "torchvision",
        "opencv-python==4.8.1.*",
        "scikit-learn<2,>=1.3",
    ]
    assert requirements_of(yaml.safe_load(FROM_HISTORY)) == lines


def test_names_are_of_the_locked_release_of_their_source() -> None:
    [source] = locked(ROOT / "requirements" / "conda-names.txt")
    written = Path(conda.__file__).with_name("conda_pypi_names.toml").read_text(encoding="utf-8")
    title = written.partition("\n")[0]
    assert f"{source.name} {source.version}," in title
    assert "Permission is hereby granted" in written


def test_names_are_written_where_they_differ_or_look_like_a_library() -> None:
    """Not those which PyPI has several of or the table errs in, and not what a recipe's URL has in place of a name."""
    pairs = [
        ("torch", "pytorch"), ("ruamel-yaml", "ruamel_yaml"), ("libpysal", "libpysal"), ("numpy", "numpy"),
        ("opencv-python", "opencv"), ("opencv-python-headless", "opencv"), ("ab" * 30, "vcversioner"),
        ("lit", "lit-nlp"),
    ]  # fmt: skip
    table = {on_pypi: {"pypi_name": on_pypi, "conda_name": name} for on_pypi, name in pairs}
    packages = {"only_conda": ["lib*"], "not_from_table": ["lit-nlp"], "pypi_names": ["opencv"]}
    assert pypi_names(table, packages) == {"libpysal": "libpysal", "pytorch": "torch"}
    with pytest.raises(SystemExit, match="opencv is one of"):
        pypi_names(table, {**packages, "pypi_names": []})
