"""Small files in the formats as published."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

AVAZU_HEADER = (
    "id,click,hour,C1,banner_pos,site_id,site_domain,site_category,app_id,app_domain,"
    "app_category,device_id,device_ip,device_model,device_type,device_conn_type,"
    "C14,C15,C16,C17,C18,C19,C20,C21"
)
AVAZU_ROWS = [
    "1000009418151094273,0,14102100,1005,0,1fbe01fe,f3845767,28905ebd,ecad2386,7801e8d9,07d7df22,"
    "a99f214a,ddd2926e,44956a24,1,2,15706,320,50,1722,0,35,-1,79",
    "10000169349117863715,1,14102123,1005,0,85f751fd,c4e18dd6,50e219e0,f53417e1,0e8616ad,0f2161f8,"
    "0f7c61dc,96809ac8,711ee120,1,0,15704,320,50,1722,0,35,100084,79",
]

RAW_SAMPLE = (
    "user,time_stamp,adgroup_id,pid,nonclk,clk\n"
    "581738,1494137644,1,430548_1007,1,0\n"
    "449818,1494638778,3,430548_1007,0,1\n"
    "914836,1494650879,4,430539_1007,1,0\n"
)
AD_FEATURE = (
    "adgroup_id,cate_id,campaign_id,customer,brand,price\n"
    "1,9025,83237,1,95471,170.0\n"
    "3,6423,83237,1,NULL,8.5\n"
    "9,1,1,1,1,1.0\n"
)
USER_PROFILE = (
    "userid,cms_segid,cms_group_id,final_gender_code,age_level,pvalue_level,shopping_level,"
    "occupation,new_user_class_level \n"
    "449818,0,5,2,5,,3,0,3\n"
    "581738,0,2,2,2,1,3,1,\n"
)

U_DATA = "196\t242\t3\t881250949\n186\t302\t5\t891717742\n196\t999\t5\t881250950\n"
U_USER = "186|39|F|executive|00000\n196|49|M|writer|55105\n"
GENRES = "|".join(["0"] * 5 + ["1"] + ["0"] * 13)
U_ITEM = (
    "242|Kolya (1996)|24-Jan-1997||http://us.imdb.com/M/title-exact?Kolya%20(1996)|"
    f'{GENRES}\n302|L.A. "Confidential" (1997)|||http://us.imdb.com/|{GENRES}\n'
    f"303|Misérables, Les (1995)|01-Jan-1995|||{GENRES}\n"
)


def avazu(path: Path, rows: list[str] | None = None) -> Path:
    text = "\n".join([AVAZU_HEADER, *(AVAZU_ROWS if rows is None else rows)]) + "\n"
    data = text.encode()
    if path.suffix == ".gz":
        data = gzip.compress(data)
    path.write_bytes(data)
    return path


def taobao(folder: Path) -> list[Path]:
    texts = {
        "user_profile.csv": USER_PROFILE,
        "raw_sample.csv": RAW_SAMPLE,
        "ad_feature.csv": AD_FEATURE,
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    return [folder / name for name in texts]


def movielens(folder: Path) -> list[Path]:
    texts = {"u.data": U_DATA, "u.user": U_USER, "u.item": U_ITEM}
    for name, text in texts.items():
        (folder / name).write_bytes(text.encode("latin-1"))
    return [folder / name for name in texts]


def zipped(path: Path, *files: Path) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.mkdir("inside")
        for file in files:
            archive.write(file, f"inside/{file.name}")
    return path
